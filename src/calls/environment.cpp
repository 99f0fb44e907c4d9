#include "calls/environment.hpp"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "boot/boot.hpp"
#include "boot/locality.hpp"
#include "heap/heap.hpp"
#include "obj/info.hpp"
#include "obj/process.hpp"
#include "obj/registry.hpp"
#include "os/process.hpp"
#include "op/op.hpp"
#include "type/predefined.hpp"

namespace weft::calls {

Err get_version(Process&, int* version, int* subversion) {
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return Err::ok;
}

Err get_library_version(Process&, char* text, int* length) {
    *length = snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING,
                       "Weft Version: %s\nMPI Standard: %d.%d\nMPI ABI: %d.%d\nCompiler: %s\nArgument checks: %s\nThreads: %s\n", WEFT_VERSION,
                       MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION, __VERSION__, WEFT_CHECKS ? "on" : "off",
                       WEFT_SINGLE ? "single" : "run-time");
    return Err::ok;
}

Err get_processor_name(Process& p, char* name, int* length) {
    if (p.job != nullptr && p.job->host[0] != 0) snprintf(name, MPI_MAX_PROCESSOR_NAME, "%.255s", p.job->host);
    else os::host_name(name, MPI_MAX_PROCESSOR_NAME);
    *length = static_cast<int>(strlen(name));
    return Err::ok;
}

Err alloc_mem(Process& p, int64_t bytes, Info* info, void* pointer_out) {
    if (bytes < 0) return fail(Err::arg, "size %lld is negative", static_cast<long long>(bytes));
    size_t align = 64;
    char text[32];
    if (obj::info_lookup(info, "mpi_minimum_memory_alignment", text, sizeof text)) {
        char* end = nullptr;
        unsigned long v = strtoul(text, &end, 10);
        bool sound = end != text && *end == 0 && v != 0 && (v & (v - 1)) == 0 && v <= (2ul << 20);
        if (!sound) return fail(Err::info_value, "mpi_minimum_memory_alignment \"%s\" is no power of two up to 2 MiB", text);
        if (v > align) align = v;
    }
    void* block = p.heap->allocate(static_cast<size_t>(bytes), align);
    if (block == nullptr) return fail(Err::no_mem, "no memory for %lld bytes", static_cast<long long>(bytes));
    memcpy(pointer_out, &block, sizeof block);   // the address of the user's pointer, whatever its type
    return Err::ok;
}

Err free_mem(Process& p, void* base) { return base == nullptr ? Err::ok : p.heap->release(base); }

double wtick(Process&) { return os::clock_tick_s(); }

Err abi_get_version(Process&, int* major, int* minor) {
    *major = MPI_ABI_VERSION;
    *minor = MPI_ABI_SUBVERSION;
    return Err::ok;
}

namespace {

Err put_number(Info& i, const char* key, size_t value) {
    char text[24];
    snprintf(text, sizeof text, "%zu", value);
    return obj::info_put(i, key, text);
}

// What a Fortran layer told, while it is being read.
struct Told {
    Info* info;
    Err error;
};

// A size from the info.
int size_told(Told& t, const char* key) {
    char text[32];
    if (!obj::info_lookup(t.info, key, text, sizeof text)) return type::FortranSizes::untold;
    char* end = nullptr;
    long v = strtol(text, &end, 10);
    if (end == text || *end != 0 || v < 0 || v > 64) {
        t.error = fail(Err::info_value, "info key %s has the value \"%s\", which is no size", key, text);
        return 0;
    }
    return static_cast<int>(v);
}

int32_t supported_told(const type::Row& row, void* arg) {
    char key[64], text[32];
    int n = snprintf(key, sizeof key, "%s_supported", row.name);
    for (int i = 0; i < n; i++) key[i] = static_cast<char>(tolower(key[i]));
    if (!obj::info_lookup(static_cast<Told*>(arg)->info, key, text, sizeof text)) return type::FortranSizes::untold;
    return strcmp(text, "true") == 0;
}

bool power_of_two(int v) { return v > 0 && (v & (v - 1)) == 0; }

}  // namespace

Err abi_get_info(Process& p, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(obj::make_info(p, &i));
    Err e = put_number(*i, "mpi_aint_size", sizeof(MPI_Aint));
    if (e == Err::ok) e = put_number(*i, "mpi_count_size", sizeof(MPI_Count));
    if (e == Err::ok) e = put_number(*i, "mpi_offset_size", sizeof(MPI_Offset));
    if (e != Err::ok) {
        obj::free_info(p, *i);
        return e;
    }
    *out = i;
    return Err::ok;
}

Err abi_get_fortran_info(Process& p, Info** out) {
    obj::Registry& r = obj::registry(p);
    *out = nullptr;
    return r.fortran != nullptr ? obj::copy_info(p, *r.fortran, out) : Err::ok;
}

Err abi_set_fortran_info(Process& p, Info& info) {
    obj::Registry& r = obj::registry(p);
    if (r.fortran_told) return fail(Err::abi, "the Fortran types have been told of before");
    Told told{&info, Err::ok};
    type::FortranSizes sizes{};
    sizes.logical = size_told(told, "mpi_logical_size");
    sizes.integer = size_told(told, "mpi_integer_size");
    sizes.real = size_told(told, "mpi_real_size");
    sizes.double_precision = size_told(told, "mpi_double_precision_size");
    sizes.supported = supported_told;
    sizes.arg = &told;
    WEFT_TRY(told.error);
    Info* copy = nullptr;
    WEFT_TRY(obj::copy_info(p, info, &copy));
    if (Err e = type::set_fortran_sizes(sizes); e != Err::ok) {
        obj::free_info(p, *copy);
        return e;
    }
    SpinGuard guard(r.lock);
    r.fortran = copy;
    r.fortran_told = true;
    return Err::ok;
}

Err abi_get_fortran_booleans(Process& p, int logical_size, void* logical_true, void* logical_false, bool* is_set) {
    obj::Registry& r = obj::registry(p);
    if (!power_of_two(logical_size) || logical_size > 16)
        return fail(Err::arg, "logical_size %d is no power of two up to 16", logical_size);
    SpinGuard guard(r.lock);
    *is_set = r.booleans_told;
    if (!r.booleans_told) return Err::ok;
    if (logical_size != r.logical_size)
        return fail(Err::arg, "logical_size is %d, but LOGICAL was said to have %d bytes", logical_size, r.logical_size);
    memcpy(logical_true, r.logical_true, static_cast<size_t>(logical_size));
    memcpy(logical_false, r.logical_false, static_cast<size_t>(logical_size));
    return Err::ok;
}

Err abi_set_fortran_booleans(Process& p, int logical_size, const void* logical_true, const void* logical_false) {
    obj::Registry& r = obj::registry(p);
    if (!power_of_two(logical_size) || logical_size > 16)
        return fail(Err::arg, "logical_size %d is no power of two up to 16", logical_size);
    if (logical_true == nullptr || logical_false == nullptr) return fail(Err::arg, "a truth value is a null pointer");
    SpinGuard guard(r.lock);
    if (r.booleans_told) return fail(Err::abi, "Fortran's truth values have been told before");
    r.booleans_told = true;
    r.logical_size = logical_size;
    memcpy(r.logical_true, logical_true, static_cast<size_t>(logical_size));
    memcpy(r.logical_false, logical_false, static_cast<size_t>(logical_size));
    op::set_fortran_false(logical_false, logical_size);
    return Err::ok;
}

Err get_hw_resource_info(Process& p, Info** out) {
    Info* info = nullptr;
    WEFT_TRY(obj::make_info(p, &info));
    boot::Locality locality = boot::own_locality(p.job);
    for (int level = 0; level < boot::levels; level++) {
        if (locality.at[level] == boot::Locality::absent) continue;
        Err e = obj::info_put(*info, boot::level_uris[level], locality.at[level] >= 0 ? "true" : "false");
        if (e == Err::ok) continue;
        obj::free_info(p, *info);
        return e;
    }
    *out = info;
    return Err::ok;
}

}  // namespace weft::calls
