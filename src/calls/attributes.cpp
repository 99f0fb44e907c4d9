#include "calls/attributes.hpp"

#include <climits>
#include <cstring>

#include "boot/boot.hpp"
#include "obj/attr.hpp"
#include "obj/process.hpp"
#include "obj/registry.hpp"

namespace weft::calls {

using obj::Owner;

namespace {

// The attributes every communicator has. Returns whether `number` is one of them.
bool builtin(Process& p, int number, void* out, bool* flag) {
    obj::Registry& r = obj::registry(p);
    const int* value = nullptr;
    static constexpr int tag_ub = INT_MAX, yes = 1, any_source_value = MPI_ANY_SOURCE, no_host = MPI_PROC_NULL;
    switch (number) {
    case MPI_TAG_UB: value = &tag_ub; break;
    case MPI_IO: value = &any_source_value; break;
    case MPI_HOST: value = &no_host; break;
    case MPI_WTIME_IS_GLOBAL: value = &yes; break;   // one clock for the node
    case MPI_APPNUM: value = p.job != nullptr && p.job->appnum >= 0 ? &p.job->appnum : nullptr; break;
    case MPI_LASTUSEDCODE: value = &r.lastusedcode; break;
    case MPI_UNIVERSE_SIZE: value = p.job != nullptr && p.job->universe_size > 0 ? &p.job->universe_size : nullptr; break;
    default: return false;
    }
    if (value != nullptr) memcpy(out, &value, sizeof value);
    *flag = value != nullptr;
    return true;
}

bool is_builtin(int number) { return number >= MPI_TAG_UB && number <= MPI_UNIVERSE_SIZE; }

Err not_yours(int number) { return fail(Err::keyval, "the predefined attribute %d cannot be changed", number); }

}  // namespace

Err comm_create_keyval(Process& p, MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* del, int* keyval, void* extra) {
    return obj::create_keyval(p, Owner::comm, reinterpret_cast<void*>(copy), reinterpret_cast<void*>(del), keyval, extra);
}
Err type_create_keyval(Process& p, MPI_Type_copy_attr_function* copy, MPI_Type_delete_attr_function* del, int* keyval, void* extra) {
    return obj::create_keyval(p, Owner::type, reinterpret_cast<void*>(copy), reinterpret_cast<void*>(del), keyval, extra);
}
Err win_create_keyval(Process& p, MPI_Win_copy_attr_function* copy, MPI_Win_delete_attr_function* del, int* keyval, void* extra) {
    return obj::create_keyval(p, Owner::win, reinterpret_cast<void*>(copy), reinterpret_cast<void*>(del), keyval, extra);
}
Err comm_free_keyval(Process& p, int* keyval) { return obj::free_keyval(p, Owner::comm, keyval); }
Err type_free_keyval(Process& p, int* keyval) { return obj::free_keyval(p, Owner::type, keyval); }
Err win_free_keyval(Process& p, int* keyval) { return obj::free_keyval(p, Owner::win, keyval); }

Err comm_set_attr(Process& p, Comm& c, int keyval, void* value) {
    return is_builtin(keyval) ? not_yours(keyval) : obj::set_attribute(p, obj::owner(c), keyval, value);
}
Err comm_get_attr(Process& p, Comm& c, int keyval, void* value, bool* flag) {
    return builtin(p, keyval, value, flag) ? Err::ok : obj::get_attribute(p, obj::owner(c), keyval, value, flag);
}
Err comm_delete_attr(Process& p, Comm& c, int keyval) {
    return is_builtin(keyval) ? not_yours(keyval) : obj::delete_attribute(p, obj::owner(c), keyval);
}

Err type_set_attr(Process& p, type::Type& t, int keyval, void* value) {
    Owner o{};
    WEFT_TRY(obj::owner(t, &o));
    return obj::set_attribute(p, o, keyval, value);
}
Err type_get_attr(Process& p, type::Type& t, int keyval, void* value, bool* flag) {
    Owner o{};
    WEFT_TRY(obj::owner(t, &o));
    return obj::get_attribute(p, o, keyval, value, flag);
}
Err type_delete_attr(Process& p, type::Type& t, int keyval) {
    Owner o{};
    WEFT_TRY(obj::owner(t, &o));
    return obj::delete_attribute(p, o, keyval);
}

}  // namespace weft::calls
