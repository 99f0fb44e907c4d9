// Attributes and their keyvals, on communicators, datatypes and windows, and the names of datatypes.
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

Err comm_create_keyval(Process&, MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* del, int* keyval, void* extra);
Err type_create_keyval(Process&, MPI_Type_copy_attr_function* copy, MPI_Type_delete_attr_function* del, int* keyval, void* extra);
Err win_create_keyval(Process&, MPI_Win_copy_attr_function* copy, MPI_Win_delete_attr_function* del, int* keyval, void* extra);
Err comm_free_keyval(Process&, int* keyval);
Err type_free_keyval(Process&, int* keyval);
Err win_free_keyval(Process&, int* keyval);

// Attribute values are words; `value` of get points at one, whatever its declared type.
Err comm_set_attr(Process&, Comm&, int keyval, void* value);
Err comm_get_attr(Process&, Comm&, int keyval, void* value, bool* flag);
Err comm_delete_attr(Process&, Comm&, int keyval);
Err type_set_attr(Process&, type::Type&, int keyval, void* value);
Err type_get_attr(Process&, type::Type&, int keyval, void* value, bool* flag);
Err type_delete_attr(Process&, type::Type&, int keyval);

Err type_set_name(Process&, type::Type&, const char* name);
Err type_get_name(Process&, type::Type&, char* name, int* length);

}  // namespace weft::obj
