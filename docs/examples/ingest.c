#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <stdio.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
/* Touches each page once, at a pace, forwards or backwards. */
__attribute__((noinline)) void load_table(char *p,size_t pages,double secs,int back){
  double t0=now();
  for(size_t i=0;i<pages;i++){ p[(back?pages-1-i:i)*4096]=1; while(now()-t0<secs*i/pages) usleep(500);} }
__attribute__((noinline)) void random_lookups(char *p,size_t pages,double secs){
  uint64_t x=88172645463325252ull; double t0=now();
  while(now()-t0<secs){ for(int i=0;i<8;i++){x^=x<<13;x^=x>>7;x^=x<<17;p[(x%pages)*4096]=1;} usleep(1500);} }
int main(int c,char**v){ size_t pages=16384; double s=c>1?atof(v[1]):20; double t0=now();
  char*p=mmap((void*)0x7e0000000000,pages*4096,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED,-1,0);
  madvise(p,pages*4096,MADV_NOHUGEPAGE);
  while(now()-t0<s){
    load_table(p,pages/2,3,0); madvise(p,pages*4096,MADV_DONTNEED);
    random_lookups(p,pages,3); madvise(p,pages*4096,MADV_DONTNEED);
    load_table(p+pages/2*4096,pages/2,3,1); madvise(p,pages*4096,MADV_DONTNEED);
    usleep(1000000);
  } }
