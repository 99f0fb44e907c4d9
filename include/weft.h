/* weft.h: what Weft offers beyond the MPI standard. Names begin with MPIX_, OPI_ or weft_; include it after or without
   mpi.h. Everything here is optional for a program that wants to run on any library with the standard ABI. */
#ifndef WEFT_H_INCLUDED
#define WEFT_H_INCLUDED

#include <mpi.h>
#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* The version of the library, as in "0.1.0". */
const char *weft_version(void);

/* One line for each function of the standard: its name, a space, and 1 if this library implements it, else 0. */
const char *weft_api_list(void);

/* Control variable number `index`, from 0: returns 0 when there is no such one. Each pointer may be null. `value` holds at
   least 32 characters; a value that is not allowed is given as "?". */
int weft_setting(int index, const char **name, char *value, const char **origin, const char **what, const char **evidence);

/* The rank that process `rank` of `comm` has among those processes of `comm` that are on the caller's node, in the order of
   their ranks; MPI_UNDEFINED if it is on another node, or `rank` is MPI_PROC_NULL. It is an index into arrays that the ranks of
   a node share. Local; its time grows with the ranks before that one, so look each partner up once. Not for
   intercommunicators (MPI_ERR_COMM). Ranks that WEFT_NODE_RANKS parts are on different nodes. Thread-safe. */
int MPIX_Comm_node_rank(MPI_Comm comm, int rank, int *node_rank);
int PMPIX_Comm_node_rank(MPI_Comm comm, int rank, int *node_rank);

/* Endpoints (docs/lanes.md): a communicator in which each process has as many ranks as it asks for, one for each of its threads, say.
   `num_ep` may differ from process to process, and may be 0; `out_handles` gets a handle for each of the caller's ranks, which follow
   each other in the order of the processes in `parent`. A handle is used as any communicator is, by one rank: its sends come from that
   rank, its receives and probes, with wildcards too, meet what is sent to it, and in collectives it takes part for it; so threads may be
   in one collective at once, each by another handle, and must be, or none of them returns. Ranks of one process talk to each other as to
   any other. Each handle is freed on its own (MPI_Comm_free). Endpoints lie on different lanes while there are lanes.
   Collective over `parent`, an intracommunicator of processes; `info` may be MPI_INFO_NULL, and no key is known. MPI_Comm_dup is
   collective over the endpoints. What makes something of processes raises MPI_ERR_UNSUPPORTED_OPERATION on such a communicator:
   MPI_Comm_group, MPI_Comm_idup, all other calls that create communicators, the standard's that create windows, topologies. Thread-safe,
   as the thread level allows; several threads at once need MPI_THREAD_MULTIPLE. */
int MPIX_Comm_create_endpoints(MPI_Comm parent, int num_ep, MPI_Info info, MPI_Comm out_handles[]);
int PMPIX_Comm_create_endpoints(MPI_Comm parent, int num_ep, MPI_Info info, MPI_Comm out_handles[]);

/* MPI_Win_create for endpoints: `wins[i]` becomes the window of `endpoints[i]`, whose part is the `sizes[i]` bytes at `bases[i]`. The
   `endpoints` are different ones of one communicator of endpoints. The call is collective over all of that communicator, each of which is
   in one call: a thread may name all endpoints of its process, or each thread its own. Each endpoint is a target of its own, by its rank,
   and an origin with epochs and locks of its own. A part that MPI_Alloc_mem has given is accessed by loads and stores where that of every
   endpoint is and all share memory. A handle is used by one endpoint, as the communicator is: threads call MPI_Win_fence and MPI_Win_free,
   which are collective, at once, each by its handle. MPI_Win_get_group, MPI_Win_post and MPI_Win_start, whose groups are of processes,
   raise MPI_ERR_UNSUPPORTED_OPERATION. `disp_unit` and `info` are as those of MPI_Win_create. `num_ep` may be 0: nothing is done then.
   Errors are raised on the first endpoint: MPI_ERR_COMM for what is no such communicator. Thread-safe, as the thread level allows. */
int MPIX_Win_create_endpoints(int num_ep, void *const bases[], const MPI_Aint sizes[], int disp_unit, MPI_Info info,
                              const MPI_Comm endpoints[], MPI_Win wins[]);
int PMPIX_Win_create_endpoints(int num_ep, void *const bases[], const MPI_Aint sizes[], int disp_unit, MPI_Info info,
                               const MPI_Comm endpoints[], MPI_Win wins[]);

/* Ownership passing (docs/ownership.md): buffers that are handed from rank to rank instead of being copied. A buffer has one owner,
   and only the owner may touch it. Gives and takes match as sends and receives do, with each other and with ordinary ones, in order.
   `*ptr` is the pointer to a buffer, of any type. Errors are raised on `comm`, or on MPI_COMM_SELF where there is none. Thread-safe, as
   the thread level allows; the buffers end with MPI_Finalize. */

/* A buffer of `length` bytes, aligned to 64, whose contents are undefined: one that this rank freed before, or new memory. Error:
   MPI_ERR_NO_MEM. */
int OPI_Alloc(void **ptr, size_t length);
/* Frees a buffer that this rank owns, whoever allocated it, and sets `*ptr` to NULL. A null `*ptr` is allowed. */
int OPI_Free(void **ptr);
/* Gives `count` elements of `datatype` at the start of the buffer, and with them the buffer, to `rank`; sets `*ptr` to NULL. On failure
   the buffer is still the caller's. Returns as MPI_Send and MPI_Isend do. To a rank with which no memory is shared, and for types with
   gaps, the data are sent and the buffer is freed. Error for a pointer that is no buffer: MPI_ERR_BUFFER. */
int OPI_Give(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm);
int OPI_Igive(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request *request);
/* Receives at most `count` elements, and makes `*ptr` the buffer in which they are; its former value is not read. A buffer that was given
   arrives as it is; data that were sent arrive in a new one, with room for `count` elements. `rank` may be MPI_ANY_SOURCE, `tag`
   MPI_ANY_TAG. `*ptr` is valid when the call, or the request, is complete; the caller is the owner then, also after MPI_ERR_TRUNCATE.
   From MPI_PROC_NULL comes NULL. */
int OPI_Take(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Status *status);
int OPI_Itake(void **ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request *request);

/* The critical path: calls whose callers promise more than the standard asks of them, so that the library does less ("Why Is MPI So
   Slow?", SC17, section 3). They mean what the standard's calls mean but for what is said here, and may be mixed with those: messages of
   plain, global, npn and noreq sends on one communicator match in the order in which they were sent. A broken promise is an error in
   builds that check arguments, and undefined without. Thread-safe, as the thread level allows. */

/* MPI_Isend to a process named by its rank in MPI_COMM_WORLD (MPI_Group_translate_ranks, once). The receiver sees the sender's rank in
   `comm`, as ever. Error: MPI_ERR_RANK for a process that `comm` cannot send to; of groups that are no run of ranks such a process is
   found by builds with WEFT_CHECK_HANDLES alone where the message is sent at once. MPI_ERR_COMM on a communicator of endpoints, or of
   several lanes (docs/lanes.md), which the caller promises `comm` is not. MPI_PROC_NULL is allowed. */
int MPIX_Isend_global(const void *buf, int count, MPI_Datatype datatype, int world_rank, int tag, MPI_Comm comm, MPI_Request *request);
int PMPIX_Isend_global(const void *buf, int count, MPI_Datatype datatype, int world_rank, int tag, MPI_Comm comm, MPI_Request *request);

/* MPI_Isend for a `dest` that is not MPI_PROC_NULL (MPI_ERR_RANK). */
int MPIX_Isend_npn(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int PMPIX_Isend_npn(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);

/* MPI_Isend without a request: the buffer may be used again after MPIX_Comm_waitall. */
int MPIX_Isend_noreq(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int PMPIX_Isend_noreq(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);

/* Completes, locally, all sends without a request that this process has made on `comm` before this call, also by other threads; none is
   no error. Operations with a request are left alone. Reports the first error of those sends, even if they were over long before. When a
   communicator is freed, such sends complete on their own. */
int MPIX_Comm_waitall(MPI_Comm comm);
int PMPIX_Comm_waitall(MPI_Comm comm);

/* Messages without source and tag: they match nothing but receives of their own kind on the same communicator, in the order in which
   they arrive; those of one sender arrive in the order in which they were sent. MPI_SOURCE and MPI_TAG of the status are undefined. */
int MPIX_Isend_nomatch(const void *buf, int count, MPI_Datatype datatype, int dest, MPI_Comm comm, MPI_Request *request);
int PMPIX_Isend_nomatch(const void *buf, int count, MPI_Datatype datatype, int dest, MPI_Comm comm, MPI_Request *request);
int MPIX_Irecv_nomatch(void *buf, int count, MPI_Datatype datatype, MPI_Comm comm, MPI_Request *request);
int PMPIX_Irecv_nomatch(void *buf, int count, MPI_Datatype datatype, MPI_Comm comm, MPI_Request *request);

/* Communicators whose handles are constants, so that a program into which the library is inlined finds them without a load. They do
   not exist until they are made, and again after MPI_Comm_free; libraries of one program agree among themselves who uses which. The
   values are numbers that the ABI keeps back for communicators: no other library knows them. */
#define MPIX_COMM_1 ((MPI_Comm)0x104)
#define MPIX_COMM_2 ((MPI_Comm)0x105)
#define MPIX_COMM_3 ((MPI_Comm)0x106)
#define MPIX_COMM_4 ((MPI_Comm)0x107)

/* As MPI_Comm_dup and MPI_Comm_split, but the result is `predefined`, one of the four; where a split has no result, it stays unused.
   Error: MPI_ERR_COMM if it is none of them, or in use, also by operations that are not over after MPI_Comm_free; the other processes
   must not have called then. */
int MPIX_Comm_dup_predefined(MPI_Comm comm, MPI_Comm predefined);
int PMPIX_Comm_dup_predefined(MPI_Comm comm, MPI_Comm predefined);
int MPIX_Comm_split_predefined(MPI_Comm comm, int color, int key, MPI_Comm predefined);
int PMPIX_Comm_split_predefined(MPI_Comm comm, int color, int key, MPI_Comm predefined);

/* All of that at once: to a rank of MPI_COMM_WORLD, which is not MPI_PROC_NULL, on one of the four communicators, without request,
   source and tag. MPIX_Irecv_nomatch receives it, MPIX_Comm_waitall completes it. */
int MPIX_Isend_all_opts(const void *buf, int count, MPI_Datatype datatype, int world_rank, MPI_Comm predefined);
int PMPIX_Isend_all_opts(const void *buf, int count, MPI_Datatype datatype, int world_rank, MPI_Comm predefined);

/* MPI_Put to an address of the target's own, in its part of a window of any kind, whatever the displacement unit. Error: MPI_ERR_RMA_RANGE
   for an address outside of the part; of a dynamic window, as in MPI_Put, the target finds it. */
int MPIX_Put_virtual_addr(const void *origin, int origin_count, MPI_Datatype origin_datatype, int target, MPI_Aint target_address,
                          int target_count, MPI_Datatype target_datatype, MPI_Win win);
int PMPIX_Put_virtual_addr(const void *origin, int origin_count, MPI_Datatype origin_datatype, int target, MPI_Aint target_address,
                           int target_count, MPI_Datatype target_datatype, MPI_Win win);

/* Partitioned collectives: persistent requests whose buffers of `partitions` x `count` elements move partition by partition
   (docs/partitioned.md). After MPI_Start, MPI_Pready marks a partition of this rank's own data; any thread may, each partition once.
   MPI_Parrived tells whether a partition's result is there, and where it is, that part of the buffer may be read before the whole is
   complete. MPI_Wait, MPI_Test and MPI_Request_free work as for MPI_Psend_init. All ranks of `comm` make the call, with equal
   `partitions`, `count`, `datatype`, `op` and `root`, and in the same order beside other calls of these two; neither waits for other
   ranks. `comm` is an intracommunicator (MPI_ERR_COMM). `info`: as in MPI_Psend_init. Thread-safe, as the thread level allows. */

/* The root's buffer to all. The root alone marks partitions (others: MPI_ERR_REQUEST from MPI_Pready). Errors: MPI_ERR_ROOT,
   MPI_ERR_ARG for a negative `partitions`. */
int MPIX_Pbcast_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                     MPI_Request *request);
int PMPIX_Pbcast_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request *request);

/* The reduction of all ranks' buffers to all, combined in the order of ranks, so `op` need not commute. Every rank marks its partitions;
   a partition's result is there when all ranks have marked theirs. `sendbuf` may be MPI_IN_PLACE: then the result replaces the data.
   `op` may run in any thread that is inside MPI, for different partitions at once. Errors: MPI_ERR_OP, MPI_ERR_ARG as above. */
int MPIX_Pallreduce_init(const void *sendbuf, void *recvbuf, int partitions, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPIX_Pallreduce_init(const void *sendbuf, void *recvbuf, int partitions, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm, MPI_Info info, MPI_Request *request);

#if defined(__cplusplus)
}
#endif

#endif
