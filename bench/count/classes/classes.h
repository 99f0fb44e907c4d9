/* Three small applications that each send numbers, as the survey of 62 codes in "Why is MPI so slow?" (section 2.2) divides them by where
 * their datatype comes from: derived.c (class 1, an own type, built in the setup), constant.c (class 2, a predefined type named in
 * the call), runtime.c (class 3, a predefined type that a function of another file chooses). `weft count --classes` builds each in three stages of
 * inlining and counts the instructions of its MPI_Isend. Plain C11 on mpi.h. */
#ifndef WEFT_CLASSES_H
#define WEFT_CLASSES_H

#include <mpi.h>

typedef double Real;

/* The application: prepares its datatype; then sends one number after the other, each with a request of its own. */
void prepare(void);
void send_numbers(const Real *numbers, MPI_Request *requests, int n);
void finish(void);

/* The library of the application (real.c). */
MPI_Datatype type_of_real(int bytes);

#endif
