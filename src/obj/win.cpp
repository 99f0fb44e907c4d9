#include "obj/win.hpp"

#include <cstring>

#include "obj/handles.hpp"
#include "obj/process.hpp"

namespace weft::obj {

namespace {

struct Hint {
    const char *key, *initial;
};
constexpr Hint hints[] = {
    {"no_locks", "false"}, {"accumulate_ordering", "rar,raw,war,waw"}, {"accumulate_ops", "same_op_no_op"},
    {"mpi_accumulate_granularity", "0"}, {"same_size", "false"}, {"same_disp_unit", "false"}, {"alloc_shared_noncontig", "false"},
};

}  // namespace

Owner owner(Win& w) { return {Owner::win, &w.attributes, handle_of(&w)}; }

Err keep_hints(Process& p, Win& w, Info* info) {
    char value[MPI_MAX_INFO_VAL];
    for (const Hint& h : hints) {
        if (info == nullptr || !info_lookup(info, h.key, value, sizeof value)) continue;
        if (w.info == nullptr) WEFT_TRY(make_info(p, &w.info));
        WEFT_TRY(info_put(*w.info, h.key, value));
    }
    return Err::ok;
}

Err tell_hints(Process& p, const Win& w, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(make_info(p, &i));
    Err e = info_put(*i, "mpi_memory_alloc_kinds", "mpi,system");
    char value[MPI_MAX_INFO_VAL];
    for (const Hint& h : hints) {
        const bool given = w.info != nullptr && info_lookup(w.info, h.key, value, sizeof value);
        if (e == Err::ok) e = info_put(*i, h.key, given ? value : h.initial);
    }
    if (e == Err::ok) *out = i;
    else free_info(p, *i);
    return e;
}

}  // namespace weft::obj
