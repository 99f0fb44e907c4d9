// The calls on groups, and on the groups of communicators. For api/, which checks handles; ranks and counts are checked here.
// No lock.
#pragma once
#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/group.hpp"

namespace weft::calls {

using obj::Comm;
using obj::Process;
using obj::Group;

Err group_size(Process&, Group&, int* size);
Err group_rank(Process&, Group&, int* rank);
Err group_translate_ranks(Process&, Group&, int n, const int* ranks, Group& to, int* result);
Err group_compare(Process&, Group&, Group&, int* result);
Err group_union(Process&, Group&, Group&, Group** out);
Err group_intersection(Process&, Group&, Group&, Group** out);
Err group_difference(Process&, Group&, Group&, Group** out);
Err group_incl(Process&, Group&, int n, const int* ranks, Group** out);
Err group_excl(Process&, Group&, int n, const int* ranks, Group** out);
Err group_range_incl(Process&, Group&, int n, const int (*ranges)[3], Group** out);
Err group_range_excl(Process&, Group&, int n, const int (*ranges)[3], Group** out);
Err group_free(Process&, Group** g);
Err comm_group(Process&, Comm&, Group** out);
Err comm_remote_group(Process&, Comm&, Group** out);

}  // namespace weft::calls
