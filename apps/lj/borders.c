/* What changes only now and then: which rank has an atom, and which atoms are ghosts where. Always by messages. */
#include <math.h>
#include <string.h>

#include "lj/lj.h"

enum { tag_count = 1, tag_data = 2, migrant = 7, ghost = 4 }; /* numbers that make an atom on its way */

void lj_note(Lj *l, LjPhase phase, int to, size_t bytes)
{
    Census *c = &l->census;
    c->by_phase[phase]++;
    c->immediate += bytes < 256;
    c->single += bytes >= 256 && bytes < 8192;
    c->synergistic += bytes >= 8192;
    c->node_local += l->arena.node_rank_of[to] != MPI_UNDEFINED;
}

/* Sends `count` numbers to one rank and receives from another what that one has; returns how many. Both are told the number first. */
static int pass(Lj *l, LjPhase phase, int to, const double *data, int count, int from, double *into, int room)
{
    int coming;
    MPI_Sendrecv(&count, 1, MPI_INT, to, tag_count, &coming, 1, MPI_INT, from, tag_count, l->comm, MPI_STATUS_IGNORE);
    if (coming > room)
        fail("%d numbers of atoms arrive, and there is room for %d", coming, room);
    MPI_Sendrecv(data, count, MPI_DOUBLE, to, tag_data, into, coming, MPI_DOUBLE, from, tag_data, l->comm, MPI_STATUS_IGNORE);
    lj_note(l, phase, to, sizeof count);
    lj_note(l, phase, to, sizeof(double) * (size_t)count);
    return coming;
}

/* Packs and removes what has left the box in this dimension. */
static int take_leavers(Lj *l, int d, double *into, int room)
{
    int count = 0;
    for (int i = 0; i < l->owned;) {
        if (l->x[3 * i + d] >= l->low[d] && l->x[3 * i + d] < l->high[d]) {
            i++;
            continue;
        }
        if (count + migrant > room)
            fail("more atoms leave a rank at once than %d numbers hold", room);
        memcpy(into + count, &l->x[3 * i], sizeof(double) * 3);
        memcpy(into + count + 3, &l->v[3 * i], sizeof(double) * 3);
        memcpy(into + count + 6, &l->id[i], sizeof(double));
        count += migrant;
        int last = --l->owned;
        memmove(&l->x[3 * i], &l->x[3 * last], sizeof(double) * 3);
        memmove(&l->v[3 * i], &l->v[3 * last], sizeof(double) * 3);
        l->id[i] = l->id[last];
    }
    return count;
}

static void keep_mine(Lj *l, int d, const double *from, int count)
{
    for (int at = 0; at < count; at += migrant) {
        if (!(from[at + d] >= l->low[d] && from[at + d] < l->high[d]))
            continue;
        if (l->owned == l->capacity)
            fail("more than %d atoms on a rank", l->capacity);
        memcpy(&l->x[3 * l->owned], from + at, sizeof(double) * 3);
        memcpy(&l->v[3 * l->owned], from + at + 3, sizeof(double) * 3);
        memcpy(&l->id[l->owned++], from + at + 6, sizeof(double));
    }
}

void lj_migrate_atoms(Lj *l)
{
    int room = 3 * l->capacity;
    l->ghosts = 0;
    for (int i = 0; i < l->owned; i++)
        for (int d = 0; d < 3; d++) {
            double *x = &l->x[3 * i + d];
            *x += *x < 0 ? l->box[d] : *x >= l->box[d] ? -l->box[d] : 0;
        }
    for (int d = 0; d < 3; d++) {
        if (l->grid[d] == 1)
            continue;
        int leaving = take_leavers(l, d, l->send, room);
        keep_mine(l, d, l->receive, pass(l, lj_migrate, l->below[d], l->send, leaving, l->above[d], l->receive, room));
        if (l->grid[d] > 2) /* else both neighbours are one */
            keep_mine(l, d, l->receive, pass(l, lj_migrate, l->above[d], l->send, leaving, l->below[d], l->receive, room));
    }
}

/* Chooses what to send among atoms [first, last): those whose coordinate lies in (low, high); packs them. */
static void choose(Lj *l, Swap *s, int first, int last, double low, double high)
{
    s->sent = 0;
    for (int i = first; i < last; i++) {
        double x = l->x[3 * i + s->dim];
        if (!(x >= low && x <= high))
            continue;
        double *to = l->send + ghost * s->sent;
        if (ghost * (s->sent + 1) > 3 * l->capacity)
            fail("more ghosts to send than %d", s->sent);
        memcpy(to, &l->x[3 * i], sizeof(double) * 3);
        to[s->dim] += s->shift;
        memcpy(to + 3, &l->id[i], sizeof(double));
        s->list[s->sent++] = i;
    }
}

static void add_ghosts(Lj *l, Swap *s, const double *from, int count)
{
    s->first = l->owned + l->ghosts;
    s->received = count;
    if (s->first + count > l->capacity)
        fail("%d atoms and ghosts on a rank, and there is room for %d", s->first + count, l->capacity);
    for (int i = 0; i < count; i++) {
        memcpy(&l->x[3 * (s->first + i)], from + ghost * i, sizeof(double) * 3);
        memcpy(&l->id[s->first + i], from + ghost * i + 3, sizeof(double));
    }
    l->ghosts += count;
}

/* One of a pair of swaps, towards lower (side 0) or higher coordinates. Where boxes are narrower than the reach, later pairs pass on
 * what the pair before brought. */
static void swap_ghosts(Lj *l, int d, int hop, int side, int first, int last)
{
    if (l->swap_count == lj_most_swaps)
        fail("boxes so much narrower than the reach of the forces need more than %d swaps", lj_most_swaps);
    Swap *s = &l->swaps[l->swap_count++];
    double middle = hop == 0 ? (side == 0 ? -INFINITY : INFINITY) : 0.5 * (l->low[d] + l->high[d]);
    s->dim = d;
    s->to = side == 0 ? l->below[d] : l->above[d];
    s->from = side == 0 ? l->above[d] : l->below[d];
    s->to_node = l->arena.node_rank_of[s->to];
    s->from_node = l->arena.node_rank_of[s->from];
    s->shift = side == 0 ? (l->at[d] == 0 ? l->box[d] : 0) : (l->at[d] == l->grid[d] - 1 ? -l->box[d] : 0);
    choose(l, s, first, last, side == 0 ? middle : l->high[d] - l->reach, side == 0 ? l->low[d] + l->reach : middle);
    if (s->to == l->rank)
        add_ghosts(l, s, l->send, s->sent);
    else
        add_ghosts(l, s, l->receive, pass(l, lj_border, s->to, l->send, ghost * s->sent, s->from, l->receive, 3 * l->capacity) / ghost);
}

void lj_find_borders(Lj *l)
{
    l->ghosts = l->swap_count = 0;
    for (int d = 0; d < 3; d++) {
        int hops = (int)(l->reach * l->grid[d] / l->box[d]) + 1;
        for (int hop = 0, first = 0; hop < hops; hop++) {
            int last = l->owned + l->ghosts;
            swap_ghosts(l, d, hop, 0, first, last);
            swap_ghosts(l, d, hop, 1, first, last);
            first = last;
        }
    }
}
