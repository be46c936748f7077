#include "tools/evaluate/positions/window_reader.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "engine/base/check_range.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

absl::Status CheckWindowOptions(const Backend& backend, const HybridH3& model,
                                const WindowOptions& options) {
  const H3Config& config = model.config();
  const int64_t positions = config.max_position_embeddings;
  if (positions > 0 && options.length > positions) {
    return absl::OutOfRangeError("windows of " + std::to_string(options.length) +
                                 " tokens exceed the model's " + std::to_string(positions) +
                                 " positions");
  }
  if (options.attention_window > 0 && config.attention_layers.empty()) {
    return InvalidArgument("attention_window is " + std::to_string(options.attention_window) +
                           ", but the model has no attention layers");
  }
  return model.CheckH3State(backend, options.h3_state);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WindowReader>> WindowReader::Make(Backend& backend,
                                                                 const HybridH3& model,
                                                                 const WindowOptions& options) {
  HIPPODROME_RETURN_IF_ERROR(CheckWindowOptions(backend, model, options));
  return std::unique_ptr<WindowReader>(new WindowReader(backend, model, options));
}

WindowReader::WindowReader(Backend& backend, const HybridH3& model, const WindowOptions& options)
    : b_(backend),
      model_(model),
      attention_window_(options.attention_window),
      chunk_(backend, model),
      most_rows_(chunk_.TokensAt(0, options.length)),
      logits_(model.NewLogits(backend, most_rows_)),
      targets_(backend.NewIndices(1, most_rows_)),
      scorer_(backend, model.config().vocab_size, most_rows_),
      state_(model.NewState(backend, 1, PagesOf(options.length), kPageTokens, attention_window_,
                            options.h3_state)) {}

int64_t WindowReader::PagesOf(int64_t tokens) const {
  if (model_.config().attention_layers.empty()) return 0;
  if (attention_window_ == 0) return PagesFor(tokens);
  // What a chunk sees from its first token on, and itself; a window begins early by less than a
  // block.
  return PagesFor(std::min(tokens, attention_window_ + kWindowBlock + most_rows_));
}

absl::StatusOr<ScoredWindow> WindowReader::Read(std::span<const int32_t> ids, int64_t first) {
  HIPPODROME_RETURN_IF_ERROR(CheckRange("token", ids, model_.config().vocab_size));
  const int64_t length = std::ssize(ids) - 1;
  SequenceState sequence = *state_->Reserve(PagesOf(length));
  ScoredWindow scores;
  for (int64_t start = 0; start < length; start += chunk_.rows()) {
    state_->Slide(sequence, start);
    const int64_t tokens = chunk_.TokensAt(start, length);
    const PrefillPart part{
        .tokens = ids.subspan(start, tokens), .start = start, .sequence = &sequence};
    const auto begin = std::chrono::steady_clock::now();
    chunk_.Begin({&part, 1});
    while (!chunk_.done()) chunk_.RunLayer(*state_);
    b_.Wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    scores.seconds.insert(scores.seconds.end(), tokens, took.count() / static_cast<double>(tokens));
    const int64_t scored = std::min(tokens, start + tokens - first);
    if (scored > 0) ScoreRows(ids.subspan(start + tokens - scored + 1, scored), scores.nll);
  }
  state_->Release(sequence);
  return scores;
}

void WindowReader::ScoreRows(std::span<const int32_t> targets, std::vector<double>& nll) {
  const int64_t rows = chunk_.rows();
  const int64_t scored = std::ssize(targets);
  const Tensor next = targets_.view.Cols(0, scored);
  chunk_.AllLogits(logits_.view.Rows(0, rows));
  b_.UploadIndices(targets, next);
  scorer_.Score(logits_.view.Rows(rows - scored, scored), next, 0);
  for (const TokenScores& score : scorer_.Download(scored, 0)) {
    nll.push_back(-static_cast<double>(score.log_probability));
  }
}

int64_t WindowReader::StateBytes(int64_t position) const {
  return state_->bytes_per_slot() +
         PagesFor(position - state_->FirstSeen(position)) * state_->bytes_per_page();
}

}  // namespace hippodrome
