// The balanced factorisation of dims_create: as small a difference between the largest and the smallest factor as there is,
// and of several such the one with the smallest largest factor, then the second, and so on.
#include "base/scratch.hpp"
#include "topo/topo.hpp"

namespace weft::topo {

namespace {

constexpr int most_divisors = 1600;  // of a number below 2^31: 2095133040

struct Divisors {
    int count;
    int32_t at[most_divisors];
};

int divisors_of(int64_t n, int32_t* out) {
    int count = 0;
    for (int64_t d = 1; d * d <= n; d++)
        if (n % d == 0) out[count++] = static_cast<int32_t>(d);
    for (int i = count - 1; i >= 0; i--)
        if (int64_t{out[i]} * out[i] != n) out[count++] = static_cast<int32_t>(n / out[i]);
    return count;
}

// base^n, or any number above `limit` where that is more.
int64_t power(int64_t base, int n, int64_t limit) {
    int64_t p = 1;
    for (int i = 0; i < n && p <= limit; i++) p *= base;
    return p;
}

// Splits `left` into `open` factors from `least` to `most`, not increasing; of several ways, the first one with the
// smallest first factor, and so on.
bool split(const Divisors& d, int64_t left, int open, int64_t least, int64_t most, int* dims) {
    if (open == 1) {
        dims[0] = static_cast<int>(left);
        return least <= left && left <= most;
    }
    const int64_t others = power(least, open - 1, left);
    for (int k = 0; k < d.count && d.at[k] <= most && d.at[k] * others <= left; k++) {
        const int64_t first = d.at[k];
        if (left % first != 0 || power(first, open, left) < left) continue;  // or too small for all to get there
        dims[0] = d.at[k];
        if (split(d, left / first, open - 1, least, first, dims + 1)) return true;
    }
    return false;
}

// Goes through the largest factors upwards. A better answer must have a smallest factor above `first - best`; once that is
// more than the root of n, there is none.
void balance(const Divisors& d, int64_t n, int open, int* dims, int* attempt) {
    int64_t best = n;
    for (int k = 0; k < d.count; k++) {
        const int64_t first = d.at[k];
        if (power(first, open, n) < n) continue;
        for (;;) {
            const int64_t least = first >= best ? first - best + 1 : 1;
            if (power(least, open, n) > n) return;
            attempt[0] = d.at[k];
            if (open > 1 && !split(d, n / first, open - 1, least, first, attempt + 1)) break;
            best = first - attempt[open - 1];
            for (int i = 0; i < open; i++) dims[i] = attempt[i];
        }
    }
}

}  // namespace

Err dims_create(Process&, int nnodes, int ndims, int* dims) {
    if (nnodes <= 0) return fail(Err::arg, "%d nodes cannot be arranged", nnodes);
    if (ndims < 0) return fail(Err::dims, "the number of dimensions, %d, is negative", ndims);
    int64_t left = nnodes;
    int open = 0;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0) return fail(Err::dims, "dimension %d is given as %d", i, dims[i]);
        if (dims[i] == 0) {
            open++;
        } else if (left % dims[i] != 0) {
            return fail(Err::dims, "%d nodes do not divide into dimensions of %d", nnodes, dims[i]);
        } else {
            left /= dims[i];
        }
    }
    if (open == 0) {
        if (ndims > 0 && left != 1) return fail(Err::dims, "the given dimensions do not make %d nodes", nnodes);
        return Err::ok;
    }
    Scratch<int> found(2 * int64_t{open});
    if (!found) return fail(Err::no_mem, "no memory for %d dimensions", open);
    Divisors d;
    d.count = divisors_of(left, d.at);
    balance(d, left, open, found.get(), found.get() + open);
    for (int i = 0, j = 0; i < ndims; i++)
        if (dims[i] == 0) dims[i] = found[j++];
    return Err::ok;
}

}  // namespace weft::topo
