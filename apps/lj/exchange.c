/* The two exchanges of every step, in four forms. Forward: positions of boundary atoms to the ranks that have them as ghosts, swap by
 * swap, since later swaps pass on what earlier ones brought. Reverse: the forces on ghosts back to their owners, in the opposite
 * order. A swap within the rank is a copy in every form, and one with a rank whose memory is not reachable is a message. */
#include <string.h>

#include "lj/lj.h"

enum { tag_forward = 3, tag_reverse = 4 };

/* ---- the loops */

static void pack_positions(const Lj *l, const Swap *s, double *to)
{
    for (int i = 0; i < s->sent; i++) {
        memcpy(to + 3 * i, &l->x[3 * s->list[i]], sizeof(double) * 3);
        to[3 * i + s->dim] += s->shift;
    }
}

static void unpack_positions(Lj *l, const Swap *s, const double *from)
{
    memcpy(&l->x[3 * s->first], from, sizeof(double) * 3 * (size_t)s->received);
}

static void pack_forces(const Lj *l, const Swap *s, double *to)
{
    memcpy(to, &l->f[3 * s->first], sizeof(double) * 3 * (size_t)s->received);
}

/* Also the fused loop of the reverse exchange: `from` is then the neighbour's array of forces itself. */
static void add_forces(Lj *l, const Swap *s, const double *from)
{
    for (int i = 0; i < s->sent; i++)
        for (int d = 0; d < 3; d++)
            l->f[3 * s->list[i] + d] += from[3 * i + d];
}

/* ---- by messages */

static void forward_message(Lj *l, const Swap *s)
{
    MPI_Request request;
    MPI_Irecv(l->receive, 3 * s->received, MPI_DOUBLE, s->from, tag_forward, l->comm, &request);
    pack_positions(l, s, l->send);
    MPI_Send(l->send, 3 * s->sent, MPI_DOUBLE, s->to, tag_forward, l->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    unpack_positions(l, s, l->receive);
}

static void reverse_message(Lj *l, const Swap *s)
{
    MPI_Request request;
    MPI_Irecv(l->receive, 3 * s->sent, MPI_DOUBLE, s->to, tag_reverse, l->comm, &request);
    pack_forces(l, s, l->send);
    MPI_Send(l->send, 3 * s->received, MPI_DOUBLE, s->from, tag_reverse, l->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    add_forces(l, s, l->receive);
}

/* ---- by handing buffers over */

static void forward_ownership(Lj *l, const Swap *s)
{
    MPI_Request request;
    void *buffer;
    opi_alloc(&l->opi, &buffer, sizeof(double) * 3 * (size_t)s->sent);
    pack_positions(l, s, buffer);
    opi_igive(&l->opi, &buffer, 3 * s->sent, MPI_DOUBLE, s->to, tag_forward, l->comm, &request);
    opi_take(&l->opi, &buffer, 3 * s->received, MPI_DOUBLE, s->from, tag_forward, l->comm);
    unpack_positions(l, s, buffer);
    opi_free(&l->opi, &buffer);
    opi_wait(&l->opi, 1, &request);
}

static void reverse_ownership(Lj *l, const Swap *s)
{
    MPI_Request request;
    void *buffer;
    opi_alloc(&l->opi, &buffer, sizeof(double) * 3 * (size_t)s->received);
    pack_forces(l, s, buffer);
    opi_igive(&l->opi, &buffer, 3 * s->received, MPI_DOUBLE, s->from, tag_reverse, l->comm, &request);
    opi_take(&l->opi, &buffer, 3 * s->sent, MPI_DOUBLE, s->to, tag_reverse, l->comm);
    add_forces(l, s, buffer);
    opi_free(&l->opi, &buffer);
    opi_wait(&l->opi, 1, &request);
}

/* ---- by memory. A signal of swap i is set by whoever has something to fill or to read, and cleared by the partner when it has. A
 * partner that memory does not reach sends or receives a message instead, as in forward_message() and reverse_message(). */

static bool reaches(int node_rank) { return node_rank != MPI_UNDEFINED; }

/* Where the ghosts of a swap lie changes with a rebuild only: till then the partner has that line in its cache. */
static void publish(Lj *l, int i, weft_signal *signal)
{
    if (l->board->first[i] != l->swaps[i].first)
        l->board->first[i] = l->swaps[i].first;
    weft_signal_set(signal);
}

/* Fused: nobody reads ghosts any more when an exchange begins, so those of all swaps may be filled at once. */
static void offer_all_ghosts(Lj *l)
{
    for (int i = 0; i < l->swap_count; i++)
        if (l->swaps[i].to != l->rank && reaches(l->swaps[i].from_node))
            publish(l, i, &l->board->forward[i]);
}

/* The sender packs into the receiver's buffer, or straight among its ghosts when fused: the list of indices is the sender's. The one
 * buffer is offered again for each swap, when it has been emptied. */
static void forward_memory(Lj *l, int i, bool fused)
{
    const Swap *s = &l->swaps[i];
    MPI_Request request = MPI_REQUEST_NULL;
    if (!reaches(s->from_node))
        MPI_Irecv(l->receive, 3 * s->received, MPI_DOUBLE, s->from, tag_forward, l->comm, &request);
    else if (!fused)
        publish(l, i, &l->board->forward[i]);
    if (reaches(s->to_node)) {
        Board *theirs = arena_of(&l->arena, s->to_node, l->board);
        weft_signal_wait(&theirs->forward[i], 1);
        double *their_ghosts = (double *)arena_of(&l->arena, s->to_node, l->x) + 3 * (size_t)theirs->first[i];
        pack_positions(l, s, fused ? their_ghosts : arena_of(&l->arena, s->to_node, l->receive));
        weft_signal_clear(&theirs->forward[i]);
    } else {
        pack_positions(l, s, l->send);
        MPI_Send(l->send, 3 * s->sent, MPI_DOUBLE, s->to, tag_forward, l->comm);
    }
    if (reaches(s->from_node))
        weft_signal_wait(&l->board->forward[i], 0);
    else
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!fused || !reaches(s->from_node))
        unpack_positions(l, s, l->receive);
}

/* The owner reads the neighbour's buffer, or its ghosts' forces themselves when fused: here, too, the list is with the owner. */
static void reverse_memory(Lj *l, int i, bool fused)
{
    const Swap *s = &l->swaps[i];
    MPI_Request request = MPI_REQUEST_NULL;
    if (!reaches(s->to_node))
        MPI_Irecv(l->receive, 3 * s->sent, MPI_DOUBLE, s->to, tag_reverse, l->comm, &request);
    if (!fused || !reaches(s->from_node))
        pack_forces(l, s, l->send);
    if (reaches(s->from_node))
        publish(l, i, &l->board->reverse[i]);
    else
        MPI_Send(l->send, 3 * s->received, MPI_DOUBLE, s->from, tag_reverse, l->comm);
    if (reaches(s->to_node)) {
        Board *theirs = arena_of(&l->arena, s->to_node, l->board);
        weft_signal_wait(&theirs->reverse[i], 1);
        const double *their_forces = (double *)arena_of(&l->arena, s->to_node, l->f) + 3 * (size_t)theirs->first[i];
        add_forces(l, s, fused ? their_forces : arena_of(&l->arena, s->to_node, l->send));
        weft_signal_clear(&theirs->reverse[i]);
    } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        add_forces(l, s, l->receive);
    }
    if (reaches(s->from_node))
        weft_signal_wait(&l->board->reverse[i], 0);
}

/* ---- */

void lj_forward_positions(Lj *l, Form form)
{
    if (form == form_fused)
        offer_all_ghosts(l);
    for (int i = 0; i < l->swap_count; i++) {
        const Swap *s = &l->swaps[i];
        if (s->to == l->rank) {
            pack_positions(l, s, &l->x[3 * s->first]);
            continue;
        }
        lj_note(l, lj_forward, s->to, sizeof(double) * 3 * (size_t)s->sent);
        if (form == form_mpi)
            forward_message(l, s);
        else if (form == form_opi)
            forward_ownership(l, s);
        else
            forward_memory(l, i, form == form_fused);
    }
}

void lj_reverse_forces(Lj *l, Form form)
{
    for (int i = l->swap_count - 1; i >= 0; i--) {
        const Swap *s = &l->swaps[i];
        if (s->to == l->rank) {
            add_forces(l, s, &l->f[3 * s->first]);
            continue;
        }
        lj_note(l, lj_reverse, s->from, sizeof(double) * 3 * (size_t)s->received);
        if (form == form_mpi)
            reverse_message(l, s);
        else if (form == form_opi)
            reverse_ownership(l, s);
        else
            reverse_memory(l, i, form == form_fused);
    }
}
