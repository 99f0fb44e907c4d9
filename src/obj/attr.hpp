// Attributes and their keyvals, on communicators, datatypes and windows; datatypes keep their names beside them.
// Floors from obj/ upwards may include this. The registry's lock guards every list; callbacks run without it.
#pragma once
#include <mpi.h>

#include "base/err.hpp"
#include "obj/comm.hpp"
#include "type/type.hpp"

namespace weft::obj {

struct Process;

// What Type::extra points to.
struct TypeExtra {
    Attributes* attributes;
    char name[MPI_MAX_OBJECT_NAME];   // as set by the user; empty: its own, if it has one
    bool named;
};

// For the makers of objects. Copying calls the copy callbacks (dup); what was copied is deleted again if one fails.
// Deleting calls the delete callbacks, the latest attribute first, and stops at the first that fails.
Err copy_attributes(Process&, Comm& from, Comm& to);
Err delete_attributes(Process&, Comm&);
Err copy_attributes(Process&, const type::Type& from, type::Type& to);
Err delete_attributes(Process&, type::Type&);   // also drops its name

// One object that carries attributes, whatever it is.
struct Owner {
    enum Of : uint8_t { comm, type, win };
    Of of;
    Attributes** list;
    void* handle;
};
Owner owner(Comm&);
Err owner(type::Type&, Owner* out);   // makes its TypeExtra

Err create_keyval(Process&, Owner::Of, void* copy, void* del, int* keyval, void* extra);
// Sets it to MPI_KEYVAL_INVALID. Attributes that use it stay.
Err free_keyval(Process&, Owner::Of, int* keyval);
// Values are words; `value` of get points at one, whatever its declared type.
Err set_attribute(Process&, Owner, int keyval, void* value);
Err get_attribute(Process&, Owner, int keyval, void* value, bool* flag);
Err delete_attribute(Process&, Owner, int keyval);

}  // namespace weft::obj
