/* Objects whose members are on pages of their own, and code that reaches them in the ways of C. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE __attribute__((aligned(4096)))
/* GCC would replace pointers to owners by their members, and then no variable has them. */
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

struct list { struct list *forward PAGE; struct list *backward PAGE; };
struct paint { int red PAGE; int green PAGE; };
struct item {
    long weight PAGE;
    struct list siblings;
    union { long whole; double real; } amount PAGE;
    struct paint paint[2];
    struct item *parent PAGE;
};
struct owner {
    struct item *items PAGE;
    long count PAGE;
    struct list head;
    long (*rate)(struct item *) PAGE;
    double totals[16] PAGE;
};

NOINLINE static void fill(struct owner *o)
{
    for (long i = 0; i < o->count; i++)
        o->items[i].weight = i + 1;
}

NOINLINE static void add(struct list *head, struct list *new)
{
    struct list *last = head->backward;
    new->forward = head;
    new->backward = last;
    last->forward = new;
    head->backward = new;
}

NOINLINE static void chain(struct owner *o)
{
    for (struct item *i = o->items; i < o->items + o->count; i++)
        add(&o->head, &i->siblings);
}

NOINLINE static double sum(struct owner *o)
{
    double sum = 0;
    for (struct list *l = o->head.forward; l != &o->head; l = l->forward) {
        struct item *i = (struct item *)((char *)l - offsetof(struct item, siblings));
        sum += (double)i->amount.whole;
    }
    return sum;
}

NOINLINE static void color(struct owner *o, int which)
{
    for (long i = 0; i < o->count; i++) {
        o->items[i].paint[which].red = (int)i;
        if (i % 3)
            o->items[i].paint[1].green += 2;
    }
}

NOINLINE static long rate(struct item *i)
{
    struct item *parent = i->parent;
    return parent ? parent->weight : 1;
}

NOINLINE static void rates(struct owner *o)
{
    for (long i = 0; i < o->count; i++)
        o->totals[i & 15] += (double)o->rate(&o->items[i]);
}

#define MEMBER(type, path, names) \
    printf("member %s %s %zu %zu\n", #type, names, offsetof(struct type, path), sizeof ((struct type *)0)->path)

/* `shapes ROUNDS` does its work so many times. Only in the first are pages touched for the first time. */
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double all = 0;
    long n = 120;
    struct item *items = mmap(0, n * sizeof *items, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct owner *owner = mmap(0, sizeof *owner, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(items, n * sizeof *items, MADV_NOHUGEPAGE);
    printf("array item %p %ld %zu\n", (void *)items, n, sizeof *items);
    printf("array owner %p 1 %zu\n", (void *)owner, sizeof *owner);
    MEMBER(item, weight, "weight");
    MEMBER(item, siblings.forward, "forward");
    MEMBER(item, siblings.backward, "backward");
    MEMBER(item, amount, "amount");
    MEMBER(item, paint[0].red, "paint|red");
    MEMBER(item, paint[0].green, "paint|green");
    MEMBER(item, paint[1].red, "paint|red");
    MEMBER(item, paint[1].green, "paint|green");
    MEMBER(item, parent, "parent");
    MEMBER(owner, items, "items");
    MEMBER(owner, count, "count");
    MEMBER(owner, head.forward, "forward");
    MEMBER(owner, head.backward, "backward");
    MEMBER(owner, rate, "rate");
    MEMBER(owner, totals, "totals");
    fflush(stdout);
    owner->items = items;
    owner->count = n;
    owner->rate = rate;
    owner->head.forward = owner->head.backward = &owner->head;
    for (int round = 0; round < rounds; round++) {
        fill(owner);
        if (round == 0)
            chain(owner);
        color(owner, (int)(n % 2));
        rates(owner);
        all += sum(owner);
    }
    return all != 0;
}
