// Copies of a few bytes without a call: what travels with its header in one cache line. Free to all; no lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <emmintrin.h>

#include "base/err.hpp"

namespace weft {

// The same address, but the compiler does not know whose. Else it warns of branches of copy_small() that the object's size
// rules out: in the program, too, where link-time optimisation takes them there. No instructions.
template <class T>
WEFT_INLINE T* anonymous(T* p) {
    __asm__("" : "+r"(p));
    return p;
}

// Copies 0..64 bytes by at most four overlapping moves; never reads or writes outside [0, bytes).
WEFT_INLINE void copy_small(void* to, const void* from, size_t bytes) {
    auto* d = static_cast<char*>(to);
    auto* s = static_cast<const char*>(from);
    if (WEFT_LIKELY(bytes == 8)) {
        uint64_t v;
        memcpy(&v, s, 8);
        memcpy(d, &v, 8);
        return;
    }
    if (bytes >= 16) {
        // Vector registers, so that callers keep theirs: no caller needs a frame for this.
        typedef uint64_t V __attribute__((vector_size(16)));
        V first, last, second, third;
        memcpy(&first, s, 16);
        memcpy(&last, s + bytes - 16, 16);
        if (bytes > 32) {
            memcpy(&second, s + 16, 16);
            memcpy(&third, s + bytes - 32, 16);
            memcpy(d + 16, &second, 16);
            memcpy(d + bytes - 32, &third, 16);
        }
        memcpy(d, &first, 16);
        memcpy(d + bytes - 16, &last, 16);
    } else if (bytes >= 8) {
        uint64_t a, b;
        memcpy(&a, s, 8);
        memcpy(&b, s + bytes - 8, 8);
        memcpy(d, &a, 8);
        memcpy(d + bytes - 8, &b, 8);
    } else if (bytes >= 4) {
        uint32_t a, b;
        memcpy(&a, s, 4);
        memcpy(&b, s + bytes - 4, 4);
        memcpy(d, &a, 4);
        memcpy(d + bytes - 4, &b, 4);
    } else if (bytes != 0) {
        d[0] = s[0];
        if (bytes > 1) {
            char m = s[bytes / 2], e = s[bytes - 1];
            d[bytes / 2] = m;
            d[bytes - 1] = e;
        }
    }
}

// memcpy past the caches: for what will not be there any more when it is read. Ends with a store fence, since such stores
// are not ordered by a release.
inline void copy_past_caches(void* to, const void* from, size_t bytes) {
    auto* d = static_cast<char*>(to);
    auto* s = static_cast<const char*>(from);
    size_t head = -reinterpret_cast<uintptr_t>(d) & 63;
    if (head > bytes) head = bytes;
    memcpy(d, s, head);
    d += head;
    s += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, d += 64, s += 64) {
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s));
        const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s + 16));
        const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s + 32));
        const __m128i e = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s + 48));
        _mm_stream_si128(reinterpret_cast<__m128i*>(d), a);
        _mm_stream_si128(reinterpret_cast<__m128i*>(d + 16), b);
        _mm_stream_si128(reinterpret_cast<__m128i*>(d + 32), c);
        _mm_stream_si128(reinterpret_cast<__m128i*>(d + 48), e);
    }
    memcpy(d, s, bytes);
    _mm_sfence();
}

// Calls for the first lines of each page of what is copied next: the processor's own prefetching ends where a page does.
inline void prefetch_pages(const void* from, size_t bytes) {
    auto* s = static_cast<const char*>(from);
    for (size_t page = 0; page < bytes; page += 4096)
        for (size_t line = 0; line < 256; line += 64) _mm_prefetch(s + page + line, _MM_HINT_T1);
}

// Tells the processor that the lines of [p, p + bytes) are wanted by another core next, which has them sooner from a cache that
// both share than from this core's own. A hint: nothing happens on processors that do not know it.
inline void demote(const void* p, size_t bytes) {
    auto* s = static_cast<const char*>(p);
    for (size_t at = 0; at < bytes; at += 64 - (reinterpret_cast<uintptr_t>(s + at) & 63)) __asm__ volatile("cldemote %0" : : "m"(s[at]));
}

// Stores to one byte of each line of [from, from + bytes), whose contents count no longer: the lines become this core's.
inline void claim_each(const void* from, size_t bytes) {
    auto* s = static_cast<char*>(const_cast<void*>(from));
    for (size_t at = 0; at < bytes; at += 64 - (reinterpret_cast<uintptr_t>(s + at) & 63)) s[at] = 0;
}

// memcpy with claim_each() done on the way, by loads and stores of V.
template <class V>
WEFT_INLINE void copy_and_claim(void* to, const void* from, size_t bytes) {
    auto* d = static_cast<char*>(to);
    auto* s = static_cast<char*>(const_cast<void*>(from));
    const auto edge = [&](size_t n) {
        if (n == 0) return;
        memcpy(d, s, n);
        claim_each(s, n);
        d += n;
        s += n;
    };
    const size_t head = -reinterpret_cast<uintptr_t>(s) & 63;
    edge(head < bytes ? head : bytes);
    bytes -= head < bytes ? head : bytes;
    for (; bytes >= 64; bytes -= 64, d += 64, s += 64) {
        V part[64 / sizeof(V)];
#pragma GCC unroll 4
        for (size_t k = 0; k < 64 / sizeof(V); ++k) memcpy(&part[k], s + k * sizeof(V), sizeof(V));
        *s = 0;
#pragma GCC unroll 4
        for (size_t k = 0; k < 64 / sizeof(V); ++k) memcpy(d + k * sizeof(V), &part[k], sizeof(V));
    }
    edge(bytes);
}

}  // namespace weft
