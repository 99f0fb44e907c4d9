// What the bindings know of each function besides its code: facts from tables/, read on cold paths only.
// Included by api/ alone. Constant data; no lock.
#pragma once
#include <cstdint>

namespace weft::bindings {

// The kinds of arguments; tables/README.md says what each means.
enum class ArgKind : uint8_t {
    any, raw, varargs, int_, addr, addr_out, callback, keyval, keyval_inout, keyval_out,
    comm, comm_null, comm_named, comm_inout, comm_out, group, group_inout, group_out, op, op_inout, op_out,
    errh, errh_inout, errh_out, info, info_req, info_inout, info_out, infos,
    win, win_named, win_inout, win_out, file, file_null, file_inout, file_out, session, session_inout, session_out,
    message_inout, message_out, request, request_null, request_inout, request_null_inout, request_out,
    requests, requests_in, type, type_any, type_named, type_null, type_inout, type_out, types, types_out,
    buf, buf_coll, count, count_any, counts, displs, nonneg, dest, source, root, rank, target,
    tag_send, tag_recv, int_out, int_inout, count_out, size_out, flag_out, ints, ints_out,
    status, statuses, status_in, status_inout, string, string_out,
};

// When an argument is looked at: always, at the root, where data goes to or comes from a root, by all that take part.
enum class Significant : uint8_t { always, root, leaf, part };

// How many elements an array has: as many as processes one can send to, as the local group, as neighbours to receive from or
// to send to, or as another argument says.
enum class Length : uint8_t { none, peers, members, sources, destinations, argument };

struct Arg {
    const char* name;
    ArgKind kind;
    Significant when;
    int8_t in_place_of;  // not looked at when this argument is MPI_IN_PLACE; -1: none
    int8_t count;        // of a buffer or an array; of a buffer of blocks, their counts; of a count_any, the number of pieces
    int8_t datatype;     // of a buffer; of blocks, perhaps an array
    Length length = Length::none;  // of an array
    bool wide = false;             // an array of 64-bit numbers
};

// Whose error handler is called: the object's, MPI_COMM_SELF's, the given one, the request's communicator's, or none.
enum class Errors : uint8_t { self, comm, win, file, session, errhandler, request, tool, none };

struct Function {
    const char* name;
    const Arg* args;
    uint8_t n_args;
    Errors errors;
    int8_t owner;        // the argument that is the object, or -1
    bool any_time;       // also before initialisation and after finalisation
    bool implemented;
};

extern const Function functions[];
extern const int n_functions;

}  // namespace weft::bindings
