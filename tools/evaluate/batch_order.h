// Which inputs run together.
#ifndef HIPPODROME_TOOLS_EVALUATE_BATCH_ORDER_H_
#define HIPPODROME_TOOLS_EVALUATE_BATCH_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hippodrome {

// Every input once, as its place in `tokens`, in batches of one length, the shortest first, which
// together have at most `max_batch_tokens` tokens; one input may always be alone.
std::vector<std::vector<size_t>> BatchesOfOneLength(std::span<const int64_t> tokens,
                                                    int64_t max_batch_tokens);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_BATCH_ORDER_H_
