// The calls on datatypes: what the bindings call once handles and counts are checked. For api/.
// Making and asking need no lock; names are guarded by the registry's, attributes in obj/attr.
#pragma once
#include <mpi.h>

#include <cstdint>

#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/ints.hpp"
#include "obj/status.hpp"
#include "type/type.hpp"

namespace weft::calls {

using obj::Ints;
using obj::Process;
using obj::Status;
using type::Type;

// `large`: the `_c` form was called.
Err type_contiguous(Process&, bool large, int64_t count, const Type& old, Type** out);
Err type_vector(Process&, bool large, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out);
Err type_hvector(Process&, bool large, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out);
Err type_indexed(Process&, bool large, int64_t count, Ints lengths, Ints displacements, const Type& old, Type** out);
Err type_hindexed(Process&, bool large, int64_t count, Ints lengths, Ints displacements, const Type& old, Type** out);
Err type_indexed_block(Process&, bool large, int64_t count, int64_t length, Ints displacements, const Type& old, Type** out);
Err type_hindexed_block(Process&, bool large, int64_t count, int64_t length, Ints displacements, const Type& old, Type** out);
Err type_struct(Process&, bool large, int64_t count, Ints lengths, Ints displacements, const MPI_Datatype* olds, Type** out);
Err type_subarray(Process&, bool large, int ndims, Ints sizes, Ints subsizes, Ints starts, int order, const Type& old, Type** out);
Err type_darray(Process&, bool large, int size, int rank, int ndims, Ints gsizes, const int* distributions, const int* dargs,
                const int* psizes, int order, const Type& old, Type** out);
Err type_resized(Process&, bool large, const Type& old, int64_t lb, int64_t extent, Type** out);
Err type_dup(Process&, const Type& old, Type** out);
Err type_f90_real(Process&, int precision, int range, Type** out);
Err type_f90_complex(Process&, int precision, int range, Type** out);
Err type_f90_integer(Process&, int range, Type** out);
Err type_match_size(Process&, int type_class, int size, Type** out);
Err type_value_index(Process&, const Type& value, const Type& index, Type** out);
Err type_commit(Process&, Type** t);
Err type_free(Process&, Type** t);

Err type_size(Process&, const Type&, int64_t* size);
Err type_extent(Process&, const Type&, int64_t* lb, int64_t* extent);
Err type_true_extent(Process&, const Type&, int64_t* lb, int64_t* extent);
Err type_envelope(Process&, const Type&, int64_t* ints, int64_t* addresses, int64_t* types, int* combiner);
Err type_envelope_large(Process&, const Type&, int64_t* ints, int64_t* addresses, int64_t* counts, int64_t* types, int* combiner);
Err type_contents(Process&, const Type&, int64_t max_ints, int64_t max_addresses, int64_t max_types, int* ints,
                  int64_t* addresses, MPI_Datatype* types);
Err type_contents_large(Process&, const Type&, int64_t max_ints, int64_t max_addresses, int64_t max_counts, int64_t max_types,
                        int* ints, int64_t* addresses, int64_t* counts, MPI_Datatype* types);

Err get_elements(Process&, const Status&, const Type&, int64_t* count);
Err status_set_elements(Process&, Status&, const Type&, int64_t count);

Err type_set_name(Process&, Type&, const char* name);
Err type_get_name(Process&, Type&, char* name, int* length);

}  // namespace weft::calls
