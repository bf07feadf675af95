/*
 * orders ROUNDS: two threads on CPUs 0 and 1 go through the same orders ROUNDS times. match_loop writes `seq` and reads what an order
 * costs; scan follows `next` and reads limits and clients. No member has two threads, so whatever lines they share, they share falsely.
 * Prints what both computed. A program of two files, so that a test can put another order.h beside it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "order.h"

#define ORDERS 32
#define LINE 64

static struct Order *orders;
static long rounds;

static void run_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus))
		abort();
}

static void *match_loop(void *sum)
{
	unsigned long all = 0;

	run_on(0);
	for (long i = 0; i < ORDERS; i++) {
		orders[i].price = i * 7;
		orders[i].quantity = i % 5;
		orders[i].fee = i % 3;
	}
	for (long round = 0; round < rounds; round++)
		for (struct Order *o = orders; o < orders + ORDERS; o++) {
			o->seq = round;
			all += o->price * o->quantity + o->fee;
		}
	*(unsigned long *)sum = all + orders[ORDERS - 1].seq;
	return NULL;
}

static void *scan(void *sum)
{
	unsigned long all = 0;

	run_on(1);
	for (long i = 0; i < ORDERS; i++) {
		orders[i].next = i + 1 < ORDERS ? &orders[i + 1] : NULL;
		orders[i].limit = i * 11;
		orders[i].client = i % 13;
	}
	for (long round = 0; round < rounds; round++)
		for (struct Order *o = orders; o; o = o->next)
			all += o->limit + o->client;
	*(unsigned long *)sum = all;
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long matched, scanned;
	pthread_t matcher, scanner;

	rounds = argc > 1 ? atol(argv[1]) : 1;
	orders = aligned_alloc(LINE, ORDERS * sizeof(*orders));
	if (!orders || pthread_create(&matcher, NULL, match_loop, &matched) || pthread_create(&scanner, NULL, scan, &scanned))
		return 1;
	pthread_join(matcher, NULL);
	pthread_join(scanner, NULL);
	printf("matched %lu scanned %lu\n", matched, scanned);
	return 0;
}
