// Handles of two backends for the same thing, as one handle.
#ifndef HIPPODROME_TOOLS_COMPARE_PAIRED_HANDLES_H_
#define HIPPODROME_TOOLS_COMPARE_PAIRED_HANDLES_H_

#include <memory>

#include "kernels/backend.h"

namespace hippodrome {

// Sizes in bytes are those of `actual`.
template <class Handle>
struct Pair {
  std::unique_ptr<Handle> expected;
  std::unique_ptr<Handle> actual;
};

struct PairedLinear final : LinearWeights, Pair<LinearWeights> {
  explicit PairedLinear(Pair<LinearWeights> pair) : Pair(std::move(pair)) {}
  int64_t out() const override { return actual->out(); }
  int64_t in() const override { return actual->in(); }
  int64_t bytes() const override { return actual->bytes(); }
};

struct PairedH3Weights final : H3Weights, Pair<H3Weights> {
  explicit PairedH3Weights(Pair<H3Weights> pair) : Pair(std::move(pair)) {}
  int64_t bytes() const override { return actual->bytes(); }
};

struct PairedLongConv final : LongConvWeights, Pair<LongConvWeights> {
  explicit PairedLongConv(Pair<LongConvWeights> pair) : Pair(std::move(pair)) {}
  int64_t longest() const override { return actual->longest(); }
  int64_t bytes() const override { return actual->bytes(); }
};

struct PairedH3State final : H3State, Pair<H3State> {
  explicit PairedH3State(Pair<H3State> pair) : Pair(std::move(pair)) {}
  int64_t slots() const override { return actual->slots(); }
  int64_t bytes_per_slot() const override { return actual->bytes_per_slot(); }
};

struct PairedPages final : KeyValuePages, Pair<KeyValuePages> {
  explicit PairedPages(Pair<KeyValuePages> pair) : Pair(std::move(pair)) {}
  int64_t pages() const override { return actual->pages(); }
  int64_t page_tokens() const override { return actual->page_tokens(); }
  int64_t bytes_per_page() const override { return actual->bytes_per_page(); }
};

// The pair inside a handle that a CheckingBackend made.
inline const Pair<LinearWeights>& Both(const LinearWeights& w) {
  return static_cast<const PairedLinear&>(w);
}
inline const Pair<H3Weights>& Both(const H3Weights& w) {
  return static_cast<const PairedH3Weights&>(w);
}
inline const Pair<LongConvWeights>& Both(const LongConvWeights& w) {
  return static_cast<const PairedLongConv&>(w);
}
inline const Pair<H3State>& Both(const H3State& s) { return static_cast<const PairedH3State&>(s); }
inline const Pair<KeyValuePages>& Both(const KeyValuePages& p) {
  return static_cast<const PairedPages&>(p);
}

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMPARE_PAIRED_HANDLES_H_
