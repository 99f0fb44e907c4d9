#include "wire/shm/claim.hpp"

#include "base/copy.hpp"

namespace weft::wire::shm {

// Loads of 32 bytes: half as many as with 16, a fifth faster.
__attribute__((target("avx2"))) static void copy_wide(void* to, const void* from, size_t bytes) {
    typedef uint64_t V __attribute__((vector_size(32)));
    copy_and_claim<V>(to, from, bytes);
}

void Claim::start(bool claim) {
    __builtin_cpu_init();
    on = claim;
    wide = __builtin_cpu_supports("avx2");
}

void Claim::copy(void* to, const void* from, size_t bytes) const {
    if (wide) return copy_wide(to, from, bytes);
    typedef uint64_t V __attribute__((vector_size(16)));
    copy_and_claim<V>(to, from, bytes);
}

void Claim::copy_past_caches(void* to, const void* from, size_t bytes) const {
    weft::copy_past_caches(to, from, bytes);
    if (on) claim_each(from, bytes);
}

}  // namespace weft::wire::shm
