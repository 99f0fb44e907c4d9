// What a Process keeps by name and number rather than by pointer: user error codes, keyvals, integer ids, MPI_INFO_ENV,
// what a Fortran layer told, who uses the tool interface. Made on first use, so that it is there before initialisation; for obj/ and api/.
// `lock` guards all of it and is a leaf.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "base/object.hpp"
#include "os/spin.hpp"

namespace weft::obj {

struct Process;
struct Info;
struct Errhandler;
struct Keyval;

inline constexpr int first_user_code = 16384;   // MPI_ERR_LASTCODE + 1

// A user's error class or code; the number is first_user_code + index.
struct UserError {
    enum State : uint8_t { unused, is_class, is_code };
    State state;
    int32_t class_of;
    char* text;      // null: none
};

// A session of the tool interface, for as long as it is open.
struct ToolSession {
    ToolSession* next;
};

struct Registry {
    os::SpinLock lock;
    Info* env;
    Errhandler* file_errhandler;      // of MPI_FILE_NULL; null: as it starts

    UserError* errors;
    int32_t n_errors, error_capacity;
    int lastusedcode;                 // what the attribute points to

    Keyval** keyvals;
    int32_t n_keyvals, keyval_capacity;

    Object** ids;                     // slot i is the object with id first_address + i
    int32_t n_ids, id_capacity;

    bool fortran_told, booleans_told;
    int32_t logical_size;
    unsigned char logical_true[16], logical_false[16];
    Info* fortran;

    int32_t tool_users;               // MPI_T_init_thread without its MPI_T_finalize
    ToolSession* tool_sessions;
};

// Never fails: without memory the process ends with a message.
Registry& registry(Process&);

// Makes room for one more element in a malloc'd array.
Err grow(void** array, int32_t used, int32_t* capacity, size_t element_bytes);
template <class T> Err grow(T** array, int32_t used, int32_t* capacity) {
    return grow(reinterpret_cast<void**>(array), used, capacity, sizeof(T));
}

}  // namespace weft::obj
