// The calls that pack and unpack. For api/, once handles and counts are checked; positions and the packed buffer are checked here.
// No lock.
#pragma once
#include "base/err.hpp"
#include "obj/comm.hpp"
#include "type/type.hpp"

namespace weft::calls {

using obj::Comm;
using obj::Process;
using type::Buffer;
using type::Type;

Err pack(Process&, Buffer in, void* out, int64_t out_bytes, int64_t* position, Comm&);
Err unpack(Process&, const void* in, int64_t in_bytes, int64_t* position, Buffer out, Comm&);
Err pack_size(Process&, int64_t count, const Type&, Comm&, int64_t* bytes);
Err pack_external(Process&, const char* datarep, Buffer in, void* out, int64_t out_bytes, int64_t* position);
Err unpack_external(Process&, const char* datarep, const void* in, int64_t in_bytes, int64_t* position, Buffer out);
Err pack_external_size(Process&, const char* datarep, int64_t count, const Type&, int64_t* bytes);

}  // namespace weft::calls
