#include "os/callers.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace weft::os {
namespace {

// A return address belongs to the instruction before it.
uintptr_t call_of(void* return_address) { return reinterpret_cast<uintptr_t>(return_address) - 1; }

// The exported function at `address`, without the P of a profiled name; null when it is not one of the `prefix`.
const char* entry_at(uintptr_t address, const char* prefix) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_sname == nullptr) return nullptr;
    const char* name = info.dli_sname;
    if (name[0] == 'P' && strncmp(name + 1, prefix, strlen(prefix)) == 0) return name + 1;
    return strncmp(name, prefix, strlen(prefix)) == 0 ? name : nullptr;
}

}  // namespace

void describe_place(uintptr_t address, char* out, size_t bytes) {
    Dl_info info;
    void* extra = nullptr;
    if (dladdr1(reinterpret_cast<void*>(address), &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return;
    const uintptr_t moved_by = static_cast<link_map*>(extra)->l_addr;
    snprintf(out, bytes, "%s+0x%lx", info.dli_fname, static_cast<unsigned long>(address - moved_by));
}

void find_entry(const char* prefix, Entry* out) {
    *out = Entry{};
    void* frames[64];
    const int n = backtrace(frames, 64);
    int outermost = -1;
    for (int i = 0; i < n; ++i) {
        const char* name = entry_at(call_of(frames[i]), prefix);
        if (name == nullptr) continue;
        if (outermost >= 0 && strcmp(name, out->function) != 0) break;
        snprintf(out->function, sizeof out->function, "%s", name);
        outermost = i;
    }
    if (outermost >= 0 && outermost + 1 < n) describe_place(call_of(frames[outermost + 1]), out->place, sizeof out->place);
}

}  // namespace weft::os
