#include "calls/errors.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "obj/process.hpp"
#include "obj/registry.hpp"

namespace weft::calls {

namespace {

struct ClassText {
    int code;
    const char* name;
    const char* text;
};

#define WEFT_CLASS(name, text) {name, #name, text}
constexpr ClassText classes[] = {
    WEFT_CLASS(MPI_SUCCESS, "no error"),
    WEFT_CLASS(MPI_ERR_BUFFER, "invalid buffer pointer"),
    WEFT_CLASS(MPI_ERR_COUNT, "invalid count"),
    WEFT_CLASS(MPI_ERR_TYPE, "invalid datatype"),
    WEFT_CLASS(MPI_ERR_TAG, "invalid tag"),
    WEFT_CLASS(MPI_ERR_COMM, "invalid communicator"),
    WEFT_CLASS(MPI_ERR_RANK, "invalid rank"),
    WEFT_CLASS(MPI_ERR_REQUEST, "invalid request"),
    WEFT_CLASS(MPI_ERR_ROOT, "invalid root"),
    WEFT_CLASS(MPI_ERR_GROUP, "invalid group"),
    WEFT_CLASS(MPI_ERR_OP, "invalid operation"),
    WEFT_CLASS(MPI_ERR_TOPOLOGY, "invalid topology"),
    WEFT_CLASS(MPI_ERR_DIMS, "invalid dimensions"),
    WEFT_CLASS(MPI_ERR_ARG, "invalid argument"),
    WEFT_CLASS(MPI_ERR_UNKNOWN, "unknown error"),
    WEFT_CLASS(MPI_ERR_TRUNCATE, "message is longer than the receive buffer"),
    WEFT_CLASS(MPI_ERR_OTHER, "known error not in the list of classes"),
    WEFT_CLASS(MPI_ERR_INTERN, "internal error"),
    WEFT_CLASS(MPI_ERR_PENDING, "operation is still pending"),
    WEFT_CLASS(MPI_ERR_IN_STATUS, "error code is in the status"),
    WEFT_CLASS(MPI_ERR_ACCESS, "permission denied"),
    WEFT_CLASS(MPI_ERR_AMODE, "invalid access mode"),
    WEFT_CLASS(MPI_ERR_ASSERT, "invalid assertion"),
    WEFT_CLASS(MPI_ERR_BAD_FILE, "invalid file name"),
    WEFT_CLASS(MPI_ERR_BASE, "invalid base"),
    WEFT_CLASS(MPI_ERR_CONVERSION, "error in a data conversion function"),
    WEFT_CLASS(MPI_ERR_DISP, "invalid displacement"),
    WEFT_CLASS(MPI_ERR_DUP_DATAREP, "data representation is defined already"),
    WEFT_CLASS(MPI_ERR_FILE_EXISTS, "file exists"),
    WEFT_CLASS(MPI_ERR_FILE_IN_USE, "file is open elsewhere"),
    WEFT_CLASS(MPI_ERR_FILE, "invalid file handle"),
    WEFT_CLASS(MPI_ERR_INFO_KEY, "invalid info key"),
    WEFT_CLASS(MPI_ERR_INFO_NOKEY, "info key is not set"),
    WEFT_CLASS(MPI_ERR_INFO_VALUE, "invalid info value"),
    WEFT_CLASS(MPI_ERR_INFO, "invalid info object"),
    WEFT_CLASS(MPI_ERR_IO, "input/output error"),
    WEFT_CLASS(MPI_ERR_KEYVAL, "invalid keyval"),
    WEFT_CLASS(MPI_ERR_LOCKTYPE, "invalid lock type"),
    WEFT_CLASS(MPI_ERR_NAME, "service name is not published"),
    WEFT_CLASS(MPI_ERR_NO_MEM, "out of memory"),
    WEFT_CLASS(MPI_ERR_NOT_SAME, "collective argument differs between processes"),
    WEFT_CLASS(MPI_ERR_NO_SPACE, "no space left"),
    WEFT_CLASS(MPI_ERR_NO_SUCH_FILE, "file does not exist"),
    WEFT_CLASS(MPI_ERR_PORT, "invalid port name"),
    WEFT_CLASS(MPI_ERR_QUOTA, "quota exceeded"),
    WEFT_CLASS(MPI_ERR_READ_ONLY, "file or file system is read-only"),
    WEFT_CLASS(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    WEFT_CLASS(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    WEFT_CLASS(MPI_ERR_RMA_RANGE, "target memory is not in the window"),
    WEFT_CLASS(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    WEFT_CLASS(MPI_ERR_RMA_SYNC, "wrong synchronisation of a window"),
    WEFT_CLASS(MPI_ERR_SERVICE, "invalid service name"),
    WEFT_CLASS(MPI_ERR_SIZE, "invalid size"),
    WEFT_CLASS(MPI_ERR_SPAWN, "processes could not be started"),
    WEFT_CLASS(MPI_ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
    WEFT_CLASS(MPI_ERR_UNSUPPORTED_OPERATION, "unsupported operation"),
    WEFT_CLASS(MPI_ERR_WIN, "invalid window"),
    WEFT_CLASS(MPI_ERR_RMA_FLAVOR, "window of the wrong flavor"),
    WEFT_CLASS(MPI_ERR_PROC_ABORTED, "a peer process aborted"),
    WEFT_CLASS(MPI_ERR_VALUE_TOO_LARGE, "value too large for its argument"),
    WEFT_CLASS(MPI_ERR_SESSION, "invalid session"),
    WEFT_CLASS(MPI_ERR_ERRHANDLER, "invalid error handler"),
    WEFT_CLASS(MPI_ERR_ABI, "ABI information was set already or cannot be set"),
    WEFT_CLASS(MPI_T_ERR_CANNOT_INIT, "tool interface cannot be initialised"),
    WEFT_CLASS(MPI_T_ERR_NOT_ACCESSIBLE, "not accessible"),
    WEFT_CLASS(MPI_T_ERR_NOT_INITIALIZED, "tool interface is not initialised"),
    WEFT_CLASS(MPI_T_ERR_NOT_SUPPORTED, "not supported"),
    WEFT_CLASS(MPI_T_ERR_MEMORY, "out of memory"),
    WEFT_CLASS(MPI_T_ERR_INVALID, "invalid use or argument"),
    WEFT_CLASS(MPI_T_ERR_INVALID_INDEX, "index out of range"),
    WEFT_CLASS(MPI_T_ERR_INVALID_ITEM, "item index out of range"),
    WEFT_CLASS(MPI_T_ERR_INVALID_SESSION, "invalid tool session"),
    WEFT_CLASS(MPI_T_ERR_INVALID_HANDLE, "invalid tool handle"),
    WEFT_CLASS(MPI_T_ERR_INVALID_NAME, "name does not exist"),
    WEFT_CLASS(MPI_T_ERR_OUT_OF_HANDLES, "no more handles"),
    WEFT_CLASS(MPI_T_ERR_OUT_OF_SESSIONS, "no more tool sessions"),
    WEFT_CLASS(MPI_T_ERR_CVAR_SET_NOT_NOW, "variable cannot be set now"),
    WEFT_CLASS(MPI_T_ERR_CVAR_SET_NEVER, "variable cannot be set"),
    WEFT_CLASS(MPI_T_ERR_PVAR_NO_WRITE, "variable cannot be written"),
    WEFT_CLASS(MPI_T_ERR_PVAR_NO_STARTSTOP, "variable cannot be started or stopped"),
    WEFT_CLASS(MPI_T_ERR_PVAR_NO_ATOMIC, "variable cannot be read and written atomically"),
};
#undef WEFT_CLASS

const ClassText* predefined_class(int code) {
    for (const ClassText& c : classes)
        if (c.code == code) return &c;
    return nullptr;
}

// With the registry's lock held; null for a number that is not in use.
obj::UserError* user_error(obj::Registry& r, int code) {
    int index = code - obj::first_user_code;
    if (index < 0 || index >= r.n_errors || r.errors[index].state == obj::UserError::unused) return nullptr;
    return &r.errors[index];
}

Err no_such_code(int code) { return fail(Err::arg, "there is no error code %d", code); }

Err add(Process& p, obj::UserError::State state, int class_of, int* out) {
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    WEFT_TRY(obj::grow(&r.errors, r.n_errors, &r.error_capacity));
    int code = obj::first_user_code + r.n_errors;
    r.errors[r.n_errors++] = {state, state == obj::UserError::is_class ? code : class_of, nullptr};
    r.lastusedcode = code;
    *out = code;
    return Err::ok;
}

// Numbers at the end that are free again are given out again.
void trim(obj::Registry& r) {
    while (r.n_errors > 0 && r.errors[r.n_errors - 1].state == obj::UserError::unused) r.n_errors--;
    r.lastusedcode = obj::first_user_code + r.n_errors - 1;
}

}  // namespace

void error_name(Process& p, int code, char* text, int size) {
    if (const ClassText* c = predefined_class(code)) {
        snprintf(text, static_cast<size_t>(size), "%s", c->name);
        return;
    }
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    obj::UserError* u = user_error(r, code);
    if (u != nullptr && u->text != nullptr) snprintf(text, static_cast<size_t>(size), "%s", u->text);
    else snprintf(text, static_cast<size_t>(size), "error code %d", code);
}

Err error_class(Process& p, int code, int* out) {
    if (predefined_class(code)) {
        *out = code;
        return Err::ok;
    }
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    obj::UserError* u = user_error(r, code);
    if (u == nullptr) return no_such_code(code);
    *out = u->class_of;
    return Err::ok;
}

Err error_string(Process& p, int code, char* text, int* length) {
    if (const ClassText* c = predefined_class(code)) {
        *length = snprintf(text, MPI_MAX_ERROR_STRING, code == 0 ? "%s%s" : "%s: %s", c->name, code == 0 ? ": no error" : c->text);
        return Err::ok;
    }
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    obj::UserError* u = user_error(r, code);
    if (u == nullptr) return no_such_code(code);
    *length = snprintf(text, MPI_MAX_ERROR_STRING, "%s", u->text != nullptr ? u->text : "");
    return Err::ok;
}

Err add_error_class(Process& p, int* out) { return add(p, obj::UserError::is_class, 0, out); }

Err add_error_code(Process& p, int error_class, int* out) {
    if (!predefined_class(error_class)) {
        obj::Registry& r = obj::registry(p);
        SpinGuard guard(r.lock);
        obj::UserError* u = user_error(r, error_class);
        if (u == nullptr || u->state != obj::UserError::is_class) return fail(Err::arg, "%d is no error class", error_class);
    }
    return add(p, obj::UserError::is_code, error_class, out);
}

Err add_error_string(Process& p, int code, const char* text) {
    if (strlen(text) >= MPI_MAX_ERROR_STRING) return fail(Err::arg, "the text is longer than MPI_MAX_ERROR_STRING");
    char* copy = strdup(text);
    if (copy == nullptr) return fail(Err::no_mem, "no memory for an error text");
    obj::Registry& r = obj::registry(p);
    {
        SpinGuard guard(r.lock);
        if (obj::UserError* u = user_error(r, code)) {
            free(u->text);
            u->text = copy;
            return Err::ok;
        }
    }
    free(copy);
    return fail(Err::arg, "%d is no error code or class of the user", code);
}

static Err remove(Process& p, int number, obj::UserError::State state, const char* what) {
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    obj::UserError* u = user_error(r, number);
    if (u == nullptr || u->state != state) return fail(Err::arg, "%d is no error %s of the user", number, what);
    if (u->text != nullptr) return fail(Err::arg, "error %s %d still has its text", what, number);
    if (state == obj::UserError::is_class)
        for (int i = 0; i < r.n_errors; i++)
            if (r.errors[i].state == obj::UserError::is_code && r.errors[i].class_of == number)
                return fail(Err::arg, "error class %d still has the code %d", number, obj::first_user_code + i);
    u->state = obj::UserError::unused;
    trim(r);
    return Err::ok;
}

Err remove_error_class(Process& p, int error_class) { return remove(p, error_class, obj::UserError::is_class, "class"); }
Err remove_error_code(Process& p, int code) { return remove(p, code, obj::UserError::is_code, "code"); }

Err remove_error_string(Process& p, int code) {
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    obj::UserError* u = user_error(r, code);
    if (u == nullptr || u->text == nullptr) return fail(Err::arg, "error code %d has no text of the user", code);
    free(u->text);
    u->text = nullptr;
    return Err::ok;
}

}  // namespace weft::calls
