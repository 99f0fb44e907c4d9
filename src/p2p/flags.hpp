// A pending request's flags, which those who wait read without the guard, while whoever matches it clears one of them under it: so both
// do it atomically. Included by p2p/.
#pragma once
#include "obj/request.hpp"

namespace weft::p2p {

// Any thread; this flag does not change while it is pending.
WEFT_INLINE bool is_special(const obj::Request& r) { return (__atomic_load_n(&r.flags, __ATOMIC_RELAXED) & obj::Request::special) != 0; }
// Whether the function of a special request finds it complete. Called with no lock held.
WEFT_INLINE bool poll_special(obj::Request& r) { return is_special(r) && r.ops->poll != nullptr && r.ops->poll(r); }
// Under the guard.
WEFT_INLINE void clear_numbered(obj::Request& r) {
    __atomic_store_n(&r.flags, static_cast<uint16_t>(r.flags & ~obj::Request::numbered), __ATOMIC_RELAXED);
}

}  // namespace weft::p2p
