// What a duplicate inherits, and the end of a communicator.
#include "coll/coll.hpp"
#include "comm/agree.hpp"
#include "obj/attr.hpp"
#include "obj/info.hpp"
#include "p2p/combined.hpp"
#include "p2p/requestless.hpp"

namespace weft::comm {

Err inherit(Process& p, Comm& from, Comm& to, Info* info) {
    if (info != nullptr) WEFT_TRY(obj::copy_info(p, *info, &to.info));
    return obj::copy_attributes(p, from, to);
}

Err free_comm(Process& p, Comm** c) {
    if (*c == &p.world || *c == &p.self) return fail(Err::comm, "a predefined communicator cannot be freed");
    WEFT_TRY(obj::delete_attributes(p, **c));
    p2p::close_buffer(p, p2p::BufferOwner(**c));
    p2p::close_requestless(p, **c);
    obj::release(**c);
    *c = nullptr;
    return Err::ok;
}

// Waits until every member is here: all their messages on the communicator are then matched or under way, and what is
// under way keeps a reference of its own.
Err disconnect(Process& p, Comm** c) {
    if (*c == &p.world || *c == &p.self) return fail(Err::comm, "a predefined communicator cannot be disconnected");
    WEFT_TRY(coll::blocking(p, **c, coll::Barrier{}));
    return free_comm(p, c);
}

}  // namespace weft::comm
