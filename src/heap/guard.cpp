#include "heap/guard.hpp"

#include <cstdio>
#include <cstdlib>

#include "os/callers.hpp"
#include "os/fault.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

namespace weft::heap {

bool Guard::open() {
    records_ = static_cast<Record*>(calloc(records, sizeof(Record)));
    if (records_ == nullptr) return false;
    os::explain_faults(explain, this);
    return true;
}

void Guard::close() {
    if (records_ == nullptr) return;
    os::explain_faults(nullptr, nullptr);
    free(records_);
    records_ = nullptr;
}

Guard::Record* Guard::find(uintptr_t address) const {
    for (size_t i = 0; records_ != nullptr && i < records; ++i)
        if (Record& r = records_[i]; address - r.at < r.bytes) return &r;
    return nullptr;
}

void Guard::note(void* data, size_t bytes, bool given, int32_t to, int32_t tag) {
    Record* r = find(reinterpret_cast<uintptr_t>(data));
    if (r == nullptr) r = &records_[next_++ % records];
    os::Entry entry;
    os::find_entry(given ? "OPI_" : "OPI_Free", &entry);
    *r = Record{reinterpret_cast<uintptr_t>(data), bytes, to, tag, given, {}};
    snprintf(r->place, sizeof r->place, "%s", entry.place);
}

void Guard::forbid_given(void* data, size_t bytes, int32_t to, int32_t tag, bool now) {
    note(data, bytes, true, to, tag);
    if (now) os::protect(data, bytes, false);
}

void Guard::forbid_freed(void* data, size_t bytes) {
    const Record* const r = find(reinterpret_cast<uintptr_t>(data));
    if (r == nullptr || !r->given) note(data, bytes, false, 0, 0);
    os::protect(data, bytes, false);
}

void Guard::permit(void* data, size_t bytes) {
    if (Record* r = find(reinterpret_cast<uintptr_t>(data)); r != nullptr) *r = Record{};
    os::protect(data, bytes, true);
}

bool Guard::explain(void* guard, uintptr_t address, uintptr_t instruction) {
    const Record* const r = static_cast<Guard*>(guard)->find(address);
    if (r == nullptr) return false;
    char what[64] = "freed", place[256] = "";
    if (r->given) snprintf(what, sizeof what, "gave to rank %d with tag %d", r->to, r->tag);
    os::describe_place(instruction, place, sizeof place);
    os::say("weft: process %d touches byte %zu of the buffer at %p, which it %s%s%s; the access is at %s", os::process_id(),
            static_cast<size_t>(address - r->at), reinterpret_cast<void*>(r->at), what, r->place[0] != 0 ? " at " : "", r->place,
            place[0] != 0 ? place : "an unknown place");
    return true;
}

}  // namespace weft::heap
