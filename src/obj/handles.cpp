#include "obj/handles.hpp"

#include "os/memory.hpp"

namespace weft::obj {

constinit const BadObject bad_object{{Kind::bad_handle, 0, 0}, {}};
constinit const BadObject null_win{{Kind::null_handle, 0, number::win_null}, {}};
constinit const BadObject no_proc_message{{Kind::message, 0, number::message_no_proc}, {}};

constinit Request null_request{{Kind::request, 0, number::request_null}, {nullptr}, Request::inactive, Request::shared, Protocol::queued, 0, nullptr, {}};

bool detail::is_address_of_something(const void* handle, size_t alignment) {
    const uintptr_t v = number(handle);
    return v % alignment == 0 && os::is_readable(v);
}

// One per thread: a call's error belongs to the thread that made it.
static thread_local const Comm* blamed = nullptr;
void blame(const Comm* comm) { blamed = comm; }
const Comm* take_blamed() {
    const Comm* c = blamed;
    blamed = nullptr;
    return c;
}

}  // namespace weft::obj
