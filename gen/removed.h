/* Names that MPI-3.0 removed, for programs of MPI-1's time: define WEFT_MPI1_NAMES before including this header, or compile
   with -DWEFT_MPI1_NAMES. They are made of today's functions alone, so that such a program runs on any library with this ABI.
   MPI_LB and MPI_UB count in MPI_Type_struct alone; no other function knows them. */
#if defined(WEFT_MPI1_NAMES)

#include <stdlib.h>

typedef MPI_Comm_errhandler_function MPI_Handler_function;

#define MPI_LB ((MPI_Datatype)0x000002fe)
#define MPI_UB ((MPI_Datatype)0x000002ff)

/* No datatype has these combiners. */
#define MPI_COMBINER_HVECTOR_INTEGER (-201)
#define MPI_COMBINER_HINDEXED_INTEGER (-202)
#define MPI_COMBINER_STRUCT_INTEGER (-203)

MPI_INLINE_ int MPI_Address(void *location, MPI_Aint *address) { return MPI_Get_address(location, address); }

MPI_INLINE_ int MPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler) {
    return MPI_Comm_create_errhandler(function, errhandler);
}
MPI_INLINE_ int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler) {
    return MPI_Comm_get_errhandler(comm, errhandler);
}
MPI_INLINE_ int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler) {
    return MPI_Comm_set_errhandler(comm, errhandler);
}

MPI_INLINE_ int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent) {
    MPI_Aint lb;
    return MPI_Type_get_extent(datatype, &lb, extent);
}
MPI_INLINE_ int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement) {
    MPI_Aint extent;
    return MPI_Type_get_extent(datatype, displacement, &extent);
}
MPI_INLINE_ int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement) {
    MPI_Aint lb = 0, extent = 0;
    int error = MPI_Type_get_extent(datatype, &lb, &extent);
    if (error == MPI_SUCCESS) *displacement = lb + extent;
    return error;
}

MPI_INLINE_ int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype) {
    return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}
MPI_INLINE_ int MPI_Type_hindexed(int count, int *blocklengths, MPI_Aint *displacements, MPI_Datatype oldtype,
                                  MPI_Datatype *newtype) {
    return MPI_Type_create_hindexed(count, blocklengths, displacements, oldtype, newtype);
}

/* The members that are no bounds, then the bounds that the others say. */
MPI_INLINE_ int MPI_Type_struct(int count, int *blocklengths, MPI_Aint *displacements, MPI_Datatype *types,
                                MPI_Datatype *newtype) {
    MPI_Datatype *member, plain;
    MPI_Aint lb = 0, ub = 0, natural, extent;
    int *length, i, error, low = 0, high = 0;
    for (i = 0; i < count; i++) {
        if (types[i] == MPI_LB && (!low++ || displacements[i] < lb)) lb = displacements[i];
        if (types[i] == MPI_UB && (!high++ || displacements[i] > ub)) ub = displacements[i];
    }
    if (!low && !high) return MPI_Type_create_struct(count, blocklengths, displacements, types, newtype);
    length = (int *)malloc((size_t)count * sizeof *length);
    member = (MPI_Datatype *)malloc((size_t)count * sizeof *member);
    error = length && member ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (i = 0; i < count && error == MPI_SUCCESS; i++) {
        int bound = types[i] == MPI_LB || types[i] == MPI_UB;
        length[i] = bound ? 0 : blocklengths[i];
        member[i] = bound ? MPI_BYTE : types[i];
    }
    if (error == MPI_SUCCESS) error = MPI_Type_create_struct(count, length, displacements, member, &plain);
    free(length);
    free(member);
    if (error != MPI_SUCCESS) return error;
    error = MPI_Type_get_extent(plain, &natural, &extent);
    if (!low) lb = natural;
    if (!high) ub = natural + extent;
    if (error == MPI_SUCCESS) error = MPI_Type_create_resized(plain, lb, ub - lb, newtype);
    MPI_Type_free(&plain);
    return error;
}

#endif
