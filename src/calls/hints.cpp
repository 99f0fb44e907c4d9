#include "calls/hints.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "obj/branches.hpp"
#include "obj/info.hpp"
#include "obj/process.hpp"

namespace weft::calls {

namespace {

// Promises of the process; all are "true" or "false".
constexpr const char* assertions[] = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length", "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
};

// The value that `info` gives the key, if it is one that an assertion can have.
bool truth(Info* info, const char* key, char (&value)[8]) {
    return obj::info_lookup(info, key, value, sizeof value) && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0);
}

// By which lanes the communicator's messages come, and for tags where the bits are that choose.
Err put_lanes(const Process& p, const Comm& c, Info& i) {
    const obj::Branches* const b = c.branches;
    char text[4 * lane::most_lanes];   // their numbers have two digits
    const auto put = [&](const char* key, uint32_t value) {
        snprintf(text, sizeof text, "%u", value);
        return obj::info_put(i, key, text);
    };
    if (b == nullptr || b->by == obj::By::endpoint) return put("weft_lane", p.contexts.lane_of(c.context));
    int at = 0;
    for (int32_t k = 0; k < b->count; k++)
        at += snprintf(text + at, sizeof text - static_cast<size_t>(at), "%s%u", k > 0 ? "," : "", p.contexts.lane_of(b->at[k]->context));
    WEFT_TRY(obj::info_put(i, "weft_lane", text));
    WEFT_TRY(put("mpi_num_vcis", static_cast<uint32_t>(b->count)));
    return obj::info_put(i, "weft_lane_by", b->by == obj::By::tag ? "tag" : "source");
}

}  // namespace

Err comm_set_info(Process& p, Comm& c, Info* info) {
    if (info == nullptr) return Err::ok;
    if (c.info == nullptr) WEFT_TRY(obj::make_info(p, &c.info));
    char value[8];
    for (const char* key : assertions)
        if (truth(info, key, value)) WEFT_TRY(obj::info_put(*c.info, key, value));
    return Err::ok;
}

Err comm_get_info(Process& p, Comm& c, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(obj::make_info(p, &i));
    Err e = obj::info_put(*i, "mpi_memory_alloc_kinds", "mpi,system");
    for (const char* key : assertions) {
        char value[8];
        if (e == Err::ok) e = obj::info_put(*i, key, truth(c.info, key, value) ? value : "false");
    }
    if (e == Err::ok && (p.lane_count > 1 || c.branches != nullptr)) e = put_lanes(p, c, *i);
    if (e != Err::ok) {
        obj::free_info(p, *i);
        return e;
    }
    *out = i;
    return Err::ok;
}

}  // namespace weft::calls
