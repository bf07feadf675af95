#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <stdlib.h>
#include <unistd.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
static const size_t MIB=1<<20;
/* Looks at pages all over the part that is in use. */
__attribute__((noinline)) void look_up(char *p,size_t bytes,double secs){
  static uint64_t x=88172645463325252ull; double t0=now();
  while(now()-t0<secs){ for(int i=0;i<12;i++){x^=x<<13;x^=x>>7;x^=x<<17;p[x%bytes&~4095ul]=1;} usleep(1000);} }
/* Appends to the log behind it. */
__attribute__((noinline)) void append(char *p,size_t *at,size_t size,int pages){ for(int i=0;i<pages;i++){p[*at%size]=1;*at+=4096;} }
int main(int c,char**v){ double s=c>1?atof(v[1]):20,t0=now(); size_t all=64*MIB,at=0;
  char*p=mmap((void*)0x7e0000000000,all,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED,-1,0);
  madvise(p,all,MADV_NOHUGEPAGE);
  while(now()-t0<s) for(size_t used=8*MIB; used<=40*MIB && now()-t0<s; used+=8*MIB){
    for(int i=0;i<10;i++){ look_up(p,used,0.12); append(p+48*MIB,&at,16*MIB,60);} 
    madvise(p,all,MADV_DONTNEED); usleep(300000);
  } }
