#include "engine/passes/token_chooser.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace hippodrome {

TokenChooser::TokenChooser(Backend& backend, int64_t vocab, int64_t max_rows,
                           IndexMatrices& indices)
    : b_(backend),
      vocab_(vocab),
      indices_(indices),
      chosen_(backend.NewIndices(1, max_rows)),
      scorer_(backend, vocab, max_rows) {}

// Of few widths, so that graphs are few.
int64_t TokenChooser::Columns(std::span<const HowToChoose> how) const {
  int64_t most = -1;
  for (const HowToChoose& h : how) most = std::max<int64_t>(most, h.likeliest.value_or(-1));
  if (most <= 0) return most;
  const auto wide = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most)));
  return std::min(wide, scorer_.MostLikeliest());
}

void TokenChooser::AddAdjustments(std::span<const HowToChoose> how, int64_t rows) {
  std::vector<LogitAdjustment> all;
  std::vector<int32_t> offsets = {0};
  for (const HowToChoose& h : how) {
    all.insert(all.end(), h.adjustments.begin(), h.adjustments.end());
    offsets.push_back(static_cast<int32_t>(all.size()));
  }
  offsets.resize(static_cast<size_t>(rows + 1), offsets.back());
  offsets_ = indices_.Add(offsets);
  entries_ = indices_.Add(AsIndices(all), std::ssize(all));
}

TokenChooser::Kind TokenChooser::Add(std::span<const HowToChoose> how, int64_t rows) {
  assert(std::ssize(how) <= rows && rows <= chosen_.view.cols);
  // Inert rows choose greedily, which is cheap.
  std::vector<SamplingRow> sampling(static_cast<size_t>(rows),
                                    SamplingRow{.parameters = {.temperature = 0}});
  for (size_t i = 0; i < how.size(); ++i) sampling[i] = how[i].sampling;
  sampling_ = indices_.Add(AsIndices(sampling), rows);
  const bool adjusts =
      std::ranges::any_of(how, [](const HowToChoose& h) { return !h.adjustments.empty(); });
  if (adjusts) AddAdjustments(how, rows);
  return {.adjusts = adjusts, .likeliest = Columns(how)};
}

void TokenChooser::Run(const Kind& kind, Tensor logits) {
  LogitAdjustments adjustments;
  if (kind.adjusts) adjustments = {indices_[offsets_], indices_[entries_]};
  const Tensor chosen = chosen_.view.Cols(0, logits.rows);
  b_.Sample(logits, vocab_, indices_[sampling_], adjustments, chosen);
  if (kind.likeliest >= 0) scorer_.Score(logits, chosen, kind.likeliest);
}

std::vector<TokenChoice> TokenChooser::Download(const Kind& kind,
                                                std::span<const HowToChoose> how) {
  const int64_t rows = std::ssize(how);
  std::vector<int32_t> tokens(how.size());
  b_.DownloadIndices(chosen_.view.Cols(0, rows), tokens);
  std::vector<TokenScores> scores;
  if (kind.likeliest >= 0) scores = scorer_.Download(rows, kind.likeliest);
  std::vector<TokenChoice> choices(how.size());
  for (size_t i = 0; i < how.size(); ++i) {
    choices[i].token = tokens[i];
    if (!how[i].likeliest || tokens[i] < 0) continue;
    choices[i].scores = std::move(scores[i]);
    std::vector<LikelyToken>& likeliest = choices[i].scores->likeliest;
    likeliest.resize(std::min(likeliest.size(), static_cast<size_t>(*how[i].likeliest)));
  }
  return choices;
}

}  // namespace hippodrome
