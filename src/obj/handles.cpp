#include "obj/handles.hpp"

namespace weft::obj {

constinit const BadObject bad_object{{Kind::bad_handle, 0}, {}};
constinit const BadObject no_proc_message{{Kind::message, 0x129}, {}};

constinit Request null_request = {
    {Kind::request, 0x180}, {Request::inactive}, 0, 0, 0, nullptr, nullptr, {{nullptr, 0, nullptr, -1, -2}}};

// Until a process is made, a process that says so.
static constinit Process nobody{.comms = {&nobody.null_comm, &nobody.null_comm, &nobody.null_comm}};
#if WEFT_THREADS_PRESET
[[gnu::weak]] constinit thread_local Process* process = &nobody;
#else
[[gnu::weak]] constinit Process* process = &nobody;
#endif

}  // namespace weft::obj
