#include "calls/wins.hpp"

#include <cstring>

#include "obj/branches.hpp"
#include "obj/registry.hpp"

namespace weft::calls {

namespace {

bool is_builtin(int keyval) { return keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL; }

// A predefined attribute is a pointer to the value, but the base, which is itself the value.
const void* builtin(const Win& w, int keyval) {
    switch (keyval) {
    case MPI_WIN_BASE: return w.base;
    case MPI_WIN_SIZE: return &w.bytes;
    case MPI_WIN_DISP_UNIT: return &w.disp_unit;
    case MPI_WIN_CREATE_FLAVOR: return &w.flavor;
    default: return &w.model;
    }
}

Err not_yours(int keyval) { return fail(Err::keyval, "the predefined attribute %d cannot be changed", keyval); }

}  // namespace

Err win_set_attr(Process& p, Win& w, int keyval, void* value) {
    return is_builtin(keyval) ? not_yours(keyval) : obj::set_attribute(p, obj::owner(w), keyval, value);
}
Err win_get_attr(Process& p, Win& w, int keyval, void* value, bool* flag) {
    if (!is_builtin(keyval)) return obj::get_attribute(p, obj::owner(w), keyval, value, flag);
    const void* found = builtin(w, keyval);
    memcpy(value, &found, sizeof found);
    *flag = true;
    return Err::ok;
}
Err win_delete_attr(Process& p, Win& w, int keyval) {
    return is_builtin(keyval) ? not_yours(keyval) : obj::delete_attribute(p, obj::owner(w), keyval);
}

Err win_set_name(Process& p, Win& w, const char* name) {
    SpinGuard guard(obj::registry(p).lock);
    strncpy(w.name, name, sizeof w.name - 1);
    w.name[sizeof w.name - 1] = 0;
    return Err::ok;
}

Err win_get_name(Process& p, Win& w, char* name, int* length) {
    SpinGuard guard(obj::registry(p).lock);
    const char* text = w.kind == Kind::win ? w.name : "MPI_WIN_NULL";
    *length = static_cast<int>(strlen(text));
    memcpy(name, text, static_cast<size_t>(*length) + 1);
    return Err::ok;
}

Err win_set_info(Process& p, Win& w, obj::Info* info) { return obj::keep_hints(p, w, info); }

Err win_set_errhandler(Process& p, Win& w, obj::Errhandler& e) { return obj::set_errhandler(p, w, e); }
Err win_get_errhandler(Process& p, Win& w, obj::Errhandler** out) {
    const obj::HeldErrhandler held = obj::errhandler_of(p, w);
    obj::Errhandler& e = held;
    obj::retain(e);
    *out = &e;
    return Err::ok;
}

Err win_get_group(Process&, Win& w, obj::Group** out) {
    if (obj::has_endpoints(*w.comm)) return fail(Err::unsupported, "a window of endpoints has no group: processes would be in it several times");
    obj::retain(*w.comm->group);
    *out = w.comm->group;
    return Err::ok;
}

}  // namespace weft::calls
