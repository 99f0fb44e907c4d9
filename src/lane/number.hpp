// How many lanes a process may have. Included by lane/ and above.
#pragma once

namespace weft::lane {

inline constexpr int most_lanes_log2 = 4, most_lanes = 1 << most_lanes_log2;   // 16: the bits that a context id has for a lane's number

}  // namespace weft::lane
