// Objects whose members are on pages of their own, and code that reaches them in the ways of C++.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <vector>

// GCC would keep values over calls in registers that calls may overwrite, where no variable is.
#ifdef __clang__
#define NOINLINE [[gnu::noinline]]
#else
#define NOINLINE [[gnu::noipa]]
#endif

template <class T> struct alignas(4096) page { T value; };

struct base {
    virtual long cost() const { return weight.value; }
    page<long> weight;
};
struct left {
    page<long> left_id;
    page<left *> left_next;
};
struct point { page<int> x; page<int> y; };
template <class T> struct both : base, left {
    page<T> total;
    point corner;
    page<std::vector<long>> history;
    long cost() const override { return (long)total.value + corner.y.value; }
};
using shape = both<double>;

struct nothing { void operator()(shape *) const {} };
using owned = std::unique_ptr<shape, nothing>;

NOINLINE static void weigh(base *b, long by) { b->weight.value = by; }
NOINLINE static void number(left &l, long id) { l.left_id.value = id; }

NOINLINE static void fill(const std::vector<owned> &all) {
    long i = 0;
    for (const owned &one : all) {
        weigh(one.get(), ++i);
        number(*one, i);
        if (i % 3) one->total.value += 1.5;
    }
}
NOINLINE static void link(const std::vector<owned> &all) {
    left *last = nullptr;
    for (const owned &one : all) {
        one->left_next.value = last;
        last = one.get();
    }
}
template <class T> NOINLINE static void move(T *from, T *to) {
    for (T *one = from; one != to; ++one) one->corner.x.value = 7;
}
NOINLINE static long costs(const std::vector<base *> &all) {
    long sum = 0;
    for (const base *one : all) sum += one->cost();
    return sum;
}
NOINLINE static long lengths(const shape *all, size_t n) {
    long sum = 0;
    for (size_t i = 0; i < n; i++) sum += all[i].history.value.empty();
    return sum;
}

// The members of a new shape stay unwritten, but for what a virtual call needs.
NOINLINE static void begin(shape *one, const shape *like) {
    __builtin_memcpy((void *)one, (const void *)like, sizeof(void *));
}

#define MEMBER(o, path, names) \
    printf("member shape %s %zu %zu\n", names, (size_t)((char *)&(o)->path - (char *)(o)), sizeof (o)->path)

// `shapes ROUNDS` does its work so many times. Only in the first are pages touched for the first time.
int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    long sum = 0;
    const long n = 120;
    size_t bytes = n * sizeof(shape);
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    shape *all = static_cast<shape *>(memory);
    printf("array shape %p %ld %zu\n", memory, n, sizeof(shape));
    printf("member shape vptr 0 8\n");
    MEMBER(all, weight, "weight");
    MEMBER(all, left_id, "left_id");
    MEMBER(all, left_next, "left_next");
    MEMBER(all, total, "total");
    MEMBER(all, corner.x, "x");
    MEMBER(all, corner.y, "y");
    MEMBER(all, history, "history");
    fflush(stdout);
    std::vector<owned> objects;
    std::vector<base *> bases;
    for (long i = 0; i < n; i++) {
        static shape first;
        begin(all + i, &first);
        objects.emplace_back(all + i);
        bases.push_back(all + i);
    }
    for (int round = 0; round < rounds; round++) {
        fill(objects);
        link(objects);
        move(all, all + n);
        sum += costs(bases) + lengths(all, n);
    }
    return sum == 0;
}
