// The calls on statuses, which are plain memory of the user. For api/. No lock.
#pragma once
#include "base/err.hpp"
#include "obj/process.hpp"
#include "obj/status.hpp"
#include "type/type.hpp"

namespace weft::calls {

using obj::Process;
using obj::Status;

inline Err status_get_source(Process&, const Status& s, int* v) { return *v = s.source, Err::ok; }
inline Err status_get_tag(Process&, const Status& s, int* v) { return *v = s.tag, Err::ok; }
inline Err status_get_error(Process&, const Status& s, int* v) { return *v = s.error, Err::ok; }
inline Err status_set_source(Process&, Status& s, int v) { return s.source = v, Err::ok; }
inline Err status_set_tag(Process&, Status& s, int v) { return s.tag = v, Err::ok; }
inline Err status_set_error(Process&, Status& s, int v) { return s.error = v, Err::ok; }
inline Err status_set_cancelled(Process&, Status& s, int flag) { return s.cancelled = flag != 0, Err::ok; }
inline Err test_cancelled(Process&, const Status& s, bool* flag) { return *flag = s.cancelled != 0, Err::ok; }

// Whole elements received, or obj::undefined where the last one is not whole.
inline Err get_count(Process&, const Status& s, const type::Type& t, int64_t* count) {
    if (t.size == 0) *count = s.bytes == 0 ? 0 : obj::undefined;
    else *count = s.bytes % t.size == 0 ? s.bytes / t.size : obj::undefined;
    return Err::ok;
}

}  // namespace weft::calls
