struct Order {
	struct Order *next;
	long limit;
	long seq;
	long price;
	long quantity;
	char note[24];
	char name[64];
	long client;
	long fee;
	char rest[48];
};
