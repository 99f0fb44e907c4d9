// `weft info --heap`: the heaps of the jobs that run on this machine, one line per rank. Of this user's processes, or of all for root.
#pragma once

namespace weft_cmd {

int print_heaps(bool json);

}  // namespace weft_cmd
