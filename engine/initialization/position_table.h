// Position tables for longer inputs than a model was trained on.
#ifndef HIPPODROME_ENGINE_INITIALIZATION_POSITION_TABLE_H_
#define HIPPODROME_ENGINE_INITIALIZATION_POSITION_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace hippodrome {

// A table of `positions` rows from the learned one, [P, d]: row t is the learned row t mod P, as
// Longformer starts from RoBERTa's (Beltagy et al., 2020): the order of near tokens, which layers
// rely on most, stays right but at the joints.  REQUIRES: d >= 1 and at least one row.
std::vector<float> TilePositions(std::span<const float> table, int64_t d, int64_t positions);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_INITIALIZATION_POSITION_TABLE_H_
