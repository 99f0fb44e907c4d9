#include "obj/registry.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "obj/process.hpp"

namespace weft::obj {

Registry& registry(Process& p) {
    Registry* r = p.registry.load(std::memory_order_acquire);   // pairs with the exchange below
    if (WEFT_LIKELY(r != nullptr)) return *r;
    auto* fresh = static_cast<Registry*>(calloc(1, sizeof(Registry)));
    if (fresh == nullptr) {
        fprintf(stderr, "weft: out of memory\n");
        abort();
    }
    fresh->lastusedcode = first_user_code - 1;
    if (!p.registry.compare_exchange_strong(r, fresh, std::memory_order_acq_rel, std::memory_order_acquire)) {
        free(fresh);
        return *r;
    }
    return *fresh;
}

Err grow(void** array, int32_t used, int32_t* capacity, size_t element_bytes) {
    if (used < *capacity) return Err::ok;
    int32_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void* larger = realloc(*array, static_cast<size_t>(wanted) * element_bytes);
    if (larger == nullptr) return fail(Err::no_mem, "no memory for %d entries", wanted);
    memset(static_cast<char*>(larger) + static_cast<size_t>(used) * element_bytes, 0,
           static_cast<size_t>(wanted - used) * element_bytes);
    *array = larger;
    *capacity = wanted;
    return Err::ok;
}

}  // namespace weft::obj
