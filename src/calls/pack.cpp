#include "calls/pack.hpp"

#include <cstring>

#include "obj/addresses.hpp"
#include "type/external.hpp"

namespace weft::calls {

namespace {

// Room for `need` bytes behind the position.
Err check_room(const void* packed, int64_t position, int64_t size, int64_t need) {
    if (need > 0 && obj::no_data_at(packed))
        return fail(Err::buffer, "the buffer of %lld packed bytes is %s", static_cast<long long>(need), obj::special_name(packed));
    if (position < 0 || position > size)
        return fail(Err::arg, "position %lld is outside a buffer of %lld bytes", static_cast<long long>(position), static_cast<long long>(size));
    if (need > size - position)
        return fail(Err::truncate, "%lld bytes do not fit the %lld behind the position", static_cast<long long>(need),
                    static_cast<long long>(size - position));
    return Err::ok;
}

Err check_datarep(const char* datarep) {
    return strcmp(datarep, "external32") == 0 ? Err::ok : fail(Err::arg, "the data representation must be external32, not %.64s", datarep);
}

Err size_of(const char* datarep, int64_t count, const Type& t, int64_t* n) {
    WEFT_TRY(check_datarep(datarep));
    *n = type::external_size(t, count);
    return *n < 0 ? fail(Err::value_too_large, "more than 2^63 bytes in external32") : Err::ok;
}

}  // namespace

Err pack(Process&, Buffer in, void* out, int64_t out_bytes, int64_t* position, Comm&) {
    int64_t n = in.bytes();
    WEFT_TRY(check_room(out, *position, out_bytes, n));
    type::pack(in, 0, n, static_cast<char*>(out) + *position);
    *position += n;
    return Err::ok;
}

Err unpack(Process&, const void* in, int64_t in_bytes, int64_t* position, Buffer out, Comm&) {
    int64_t n = out.bytes();
    WEFT_TRY(check_room(in, *position, in_bytes, n));
    type::unpack(out, 0, n, static_cast<const char*>(in) + *position);
    *position += n;
    return Err::ok;
}

Err pack_size(Process&, int64_t count, const Type& t, Comm&, int64_t* n) {
    if (__builtin_mul_overflow(count, t.size, n)) return fail(Err::value_too_large, "more than 2^63 bytes");
    return Err::ok;
}

Err pack_external(Process&, const char* datarep, Buffer in, void* out, int64_t out_bytes, int64_t* position) {
    int64_t n;
    WEFT_TRY(size_of(datarep, in.count, *in.type, &n));
    WEFT_TRY(check_room(out, *position, out_bytes, n));
    WEFT_TRY(type::pack_external(in, static_cast<char*>(out) + *position));
    *position += n;
    return Err::ok;
}

Err unpack_external(Process&, const char* datarep, const void* in, int64_t in_bytes, int64_t* position, Buffer out) {
    int64_t n;
    WEFT_TRY(size_of(datarep, out.count, *out.type, &n));
    WEFT_TRY(check_room(in, *position, in_bytes, n));
    WEFT_TRY(type::unpack_external(out, static_cast<const char*>(in) + *position));
    *position += n;
    return Err::ok;
}

Err pack_external_size(Process&, const char* datarep, int64_t count, const Type& t, int64_t* n) {
    int64_t bytes_needed;
    WEFT_TRY(size_of(datarep, count, t, &bytes_needed));
    *n = bytes_needed;
    return Err::ok;
}

}  // namespace weft::calls
