#include "tools/compare/checking_backend.h"

#include <algorithm>
#include <limits>

#include "tools/compare/side_by_side.h"

namespace hippodrome {

// ---- Comparison --------------------------------------------------------------------------------

std::vector<float> CheckingBackend::ExpectedValues(Tensor view) {
  std::vector<float> values(static_cast<size_t>(view.rows * view.cols));
  expected_.Download(view, values);
  return values;
}

std::vector<float> CheckingBackend::ActualValues(Tensor view) {
  std::vector<float> values(static_cast<size_t>(view.rows * view.cols));
  actual_.Download(Twin(view), values);
  return values;
}

void CheckingBackend::Share(Tensor input) {
  if (input.data == nullptr) return;
  const Tensor twin = Twin(input);
  actual_.Upload(ExpectedValues(input), twin);
  if (SizeOf(twin.dtype) < SizeOf(input.dtype)) expected_.Upload(ActualValues(input), input);
}

Difference CheckingBackend::Next(const std::string& operation) {
  return {.operation = operation, .ordinal = operations_++, .norms = norms_};
}

void CheckingBackend::Note(const Difference& difference, double error) {
  double& worst = worst_[difference.operation];
  worst = std::max(worst, error);
  if (error > 1 && !first_difference_) first_difference_ = difference;
}

void CheckingBackend::Check(const std::string& operation, Tensor output,
                            const SequenceParts& parts) {
  const std::vector<float> expected = ExpectedValues(output);
  const std::vector<float> actual = ActualValues(output);
  std::vector<char> unspecified(static_cast<size_t>(output.rows));
  for (const SequencePart& part : parts.parts) {
    if (part.slot < 0) std::fill_n(unspecified.begin() + part.first_row, part.tokens, 1);
  }
  const auto cols = static_cast<size_t>(output.cols);
  Difference where = Next(operation);
  for (int64_t row = 0; row < output.rows; ++row) {
    if (unspecified[static_cast<size_t>(row)] != 0) continue;
    const size_t begin = static_cast<size_t>(row) * cols;
    where.row = row;
    NoteWorst(where, std::span(expected).subspan(begin, cols),
              std::span(actual).subspan(begin, cols), ToleranceOf(Twin(output).dtype));
  }
}

void CheckingBackend::CheckValues(const std::string& operation, std::span<const float> expected,
                                  std::span<const float> actual) {
  // Devices keep inputs, keys and values as they are, in bf16.
  NoteWorst(Next(operation), expected, actual, kBF16Tolerance);
}

void CheckingBackend::NoteWorst(Difference where, std::span<const float> expected,
                                std::span<const float> actual, double tolerance) {
  if (expected.empty()) return;
  const WorstElement worst = FindWorst(expected, actual, tolerance);
  where.column = worst.column;
  where.expected = expected[static_cast<size_t>(worst.column)];
  where.actual = actual[static_cast<size_t>(worst.column)];
  Note(where, worst.error);
}

void CheckingBackend::CheckTokens(Tensor tokens) {
  std::vector<int32_t> expected(static_cast<size_t>(tokens.cols)), actual(expected.size());
  expected_.DownloadIndices(tokens, expected);
  actual_.DownloadIndices(Twin(tokens), actual);
  Difference where = Next("sample");
  for (size_t i = 0; i < expected.size(); ++i) {
    where.row = static_cast<int64_t>(i);
    where.expected = static_cast<float>(expected[i]);
    where.actual = static_cast<float>(actual[i]);
    Note(where, expected[i] == actual[i] ? 0 : std::numeric_limits<double>::infinity());
  }
}

// ---- Memory ------------------------------------------------------------------------------------

OwnedTensor CheckingBackend::NewTensor(int64_t rows, int64_t cols) {
  return twins_.Join(expected_.NewTensor(rows, cols), actual_.NewTensor(rows, cols));
}

OwnedTensor CheckingBackend::NewActivations(int64_t rows, int64_t cols, DType weights) {
  return twins_.Join(expected_.NewActivations(rows, cols, weights),
                     actual_.NewActivations(rows, cols, weights));
}

OwnedTensor CheckingBackend::NewProductInputs(int64_t rows, int64_t cols, DType weights) {
  // What one backend has rounded for its products, the other cannot be compared with.
  return NewActivations(rows, cols, weights);
}

OwnedTensor CheckingBackend::NewIndices(int64_t rows, int64_t cols) {
  return twins_.Join(expected_.NewIndices(rows, cols), actual_.NewIndices(rows, cols));
}

void CheckingBackend::Upload(std::span<const float> values, Tensor dst) {
  expected_.Upload(values, dst);
  actual_.Upload(values, Twin(dst));
}

void CheckingBackend::UploadIndices(std::span<const int32_t> values, Tensor dst) {
  expected_.UploadIndices(values, dst);
  actual_.UploadIndices(values, Twin(dst));
}

void CheckingBackend::Download(Tensor src, std::span<float> values) {
  expected_.Download(src, values);
}

void CheckingBackend::DownloadIndices(Tensor src, std::span<int32_t> values) {
  expected_.DownloadIndices(src, values);
}

void CheckingBackend::Wait() {
  expected_.Wait();
  actual_.Wait();
}

// ---- Handles -----------------------------------------------------------------------------------

std::unique_ptr<LinearWeights> CheckingBackend::PackLinear(std::span<const HostMatrix> parts,
                                                           DType dtype) {
  Pair<LinearWeights> pair{expected_.PackLinear(parts, dtype), actual_.PackLinear(parts, dtype)};
  if (pair.expected == nullptr || pair.actual == nullptr) return nullptr;
  return std::make_unique<PairedLinear>(std::move(pair));
}

std::unique_ptr<H3Weights> CheckingBackend::PrepareH3(const H3Parameters& parameters,
                                                      DType weights) {
  return std::make_unique<PairedH3Weights>(Pair<H3Weights>{expected_.PrepareH3(parameters, weights),
                                                           actual_.PrepareH3(parameters, weights)});
}

std::unique_ptr<LongConvWeights> CheckingBackend::PrepareLongConv(
    const LongConvParameters& parameters, int64_t longest, DType weights) {
  return std::make_unique<PairedLongConv>(
      Pair<LongConvWeights>{expected_.PrepareLongConv(parameters, longest, weights),
                            actual_.PrepareLongConv(parameters, longest, weights)});
}

std::unique_ptr<SsmWeights> CheckingBackend::PrepareSsm(const LongConvParameters& parameters,
                                                        DType weights) {
  return std::make_unique<PairedSsm>(Pair<SsmWeights>{expected_.PrepareSsm(parameters, weights),
                                                      actual_.PrepareSsm(parameters, weights)});
}

std::unique_ptr<RecurrentState> CheckingBackend::NewSsmState(const SsmWeights& weights,
                                                             int64_t slots) {
  const auto& w = Both(weights);
  return std::make_unique<PairedState>(Pair<RecurrentState>{
      expected_.NewSsmState(*w.expected, slots), actual_.NewSsmState(*w.actual, slots)});
}

std::unique_ptr<RecurrentState> CheckingBackend::NewLinearAttentionState(
    const LinearAttentionShape& shape, int64_t slots) {
  return std::make_unique<PairedState>(
      Pair<RecurrentState>{expected_.NewLinearAttentionState(shape, slots),
                           actual_.NewLinearAttentionState(shape, slots)});
}

std::unique_ptr<RecurrentState> CheckingBackend::NewH3State(const H3Weights& weights, int64_t slots,
                                                            DType type) {
  const auto& w = Both(weights);
  return std::make_unique<PairedState>(Pair<RecurrentState>{
      expected_.NewH3State(*w.expected, slots, type), actual_.NewH3State(*w.actual, slots, type)});
}

void CheckingBackend::ResetSlot(RecurrentState& state, int64_t slot) {
  expected_.ResetSlot(*Both(state).expected, slot);
  actual_.ResetSlot(*Both(state).actual, slot);
}

void CheckingBackend::CopySlot(RecurrentState& state, int64_t from, int64_t to) {
  expected_.CopySlot(*Both(state).expected, from, to);
  actual_.CopySlot(*Both(state).actual, from, to);
}

// Of different numbers of pending tokens, what those may be missing in cannot be compared.
int64_t CheckingBackend::ExportSlot(const RecurrentState& state, int64_t slot, int64_t position,
                                    std::span<const std::span<float>> arrays) {
  const int64_t pending = expected_.ExportSlot(*Both(state).expected, slot, position, arrays);
  const std::vector<StateArray> names = state.arrays();
  std::vector<std::vector<float>> values;
  for (const StateArray& array : names) values.emplace_back(array.values());
  const int64_t its_pending =
      actual_.ExportSlot(*Both(state).actual, slot, position,
                         std::vector<std::span<float>>(values.begin(), values.end()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (names[i].pending || (names[i].name == "modes" && pending != its_pending)) continue;
    CheckValues("export_slot", arrays[i], values[i]);
  }
  return pending;
}

void CheckingBackend::ImportSlot(RecurrentState& state, int64_t slot, int64_t position,
                                 std::span<const std::span<const float>> arrays) {
  expected_.ImportSlot(*Both(state).expected, slot, position, arrays);
  actual_.ImportSlot(*Both(state).actual, slot, position, arrays);
}

void CheckingBackend::ExportRows(const KeyValuePages& pages, std::span<const int32_t> page_table,
                                 int64_t first, int64_t count, std::span<float> keys,
                                 std::span<float> values) {
  expected_.ExportRows(*Both(pages).expected, page_table, first, count, keys, values);
  std::vector<float> actual_keys(keys.size()), actual_values(values.size());
  actual_.ExportRows(*Both(pages).actual, page_table, first, count, actual_keys, actual_values);
  CheckValues("export_rows", keys, actual_keys);
  CheckValues("export_rows", values, actual_values);
}

void CheckingBackend::ImportRows(KeyValuePages& pages, std::span<const int32_t> page_table,
                                 int64_t first, int64_t count, std::span<const float> keys,
                                 std::span<const float> values) {
  expected_.ImportRows(*Both(pages).expected, page_table, first, count, keys, values);
  actual_.ImportRows(*Both(pages).actual, page_table, first, count, keys, values);
}

void CheckingBackend::CopyPage(KeyValuePages& pages, int32_t from, int32_t to) {
  expected_.CopyPage(*Both(pages).expected, from, to);
  actual_.CopyPage(*Both(pages).actual, from, to);
}

std::unique_ptr<KeyValuePages> CheckingBackend::NewKeyValuePages(const AttentionShape& shape,
                                                                 int64_t pages, int64_t page_tokens,
                                                                 DType weights) {
  return std::make_unique<PairedPages>(
      Pair<KeyValuePages>{expected_.NewKeyValuePages(shape, pages, page_tokens, weights),
                          actual_.NewKeyValuePages(shape, pages, page_tokens, weights)});
}

// ---- Operations --------------------------------------------------------------------------------

void CheckingBackend::Embedding(const LinearWeights& table, Tensor ids, const AddedRows& types,
                                const AddedRows& positions, Tensor y) {
  norms_ = 0;
  expected_.Embedding(*Both(table).expected, ids, types, positions, y);
  actual_.Embedding(*Both(table).actual, Twin(ids), Twin(types), Twin(positions), Twin(y));
  Check("embedding", y);
}

void CheckingBackend::LayerNorm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  Share(x);
  expected_.LayerNorm(x, gamma, beta, epsilon, y);
  actual_.LayerNorm(Twin(x), Twin(gamma), Twin(beta), epsilon, Twin(y));
  Check("layer_norm", y);
  ++norms_;
}

void CheckingBackend::Linear(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor y) {
  Share(x);
  // Gate and residual may be the output itself: shared before either backend writes it.
  Share(epilogue.gate);
  Share(epilogue.residual);
  Epilogue twin = epilogue;
  twin.bias = Twin(epilogue.bias);
  twin.gate = Twin(epilogue.gate);
  twin.residual = Twin(epilogue.residual);
  expected_.Linear(x, *Both(w).expected, epilogue, y);
  actual_.Linear(Twin(x), *Both(w).actual, twin, Twin(y));
  Check("linear " + std::to_string(w.in()) + "x" + std::to_string(w.out()), y);
}

void CheckingBackend::Activate(Tensor x, const Epilogue& epilogue, Tensor y) {
  Share(x);
  Share(epilogue.gate);
  Share(epilogue.residual);
  Epilogue twin = epilogue;
  twin.gate = Twin(epilogue.gate);
  twin.residual = Twin(epilogue.residual);
  expected_.Activate(x, epilogue, y);
  actual_.Activate(Twin(x), twin, Twin(y));
  Check("activate", y);
}

void CheckingBackend::H3Sequence(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                                 const SequenceParts& parts, Tensor o) {
  Share(qkv);
  const auto& w = Both(weights);
  const auto& s = Both(state);
  expected_.H3Sequence(*w.expected, qkv, *s.expected, parts, o);
  actual_.H3Sequence(*w.actual, Twin(qkv), *s.actual, parts, Twin(o));
  Check("h3_sequence", o, parts);
}

void CheckingBackend::H3Step(const H3Weights& weights, Tensor qkv, RecurrentState& state,
                             Tensor slots, Tensor positions, Tensor o) {
  Share(qkv);
  const auto& w = Both(weights);
  const auto& s = Both(state);
  expected_.H3Step(*w.expected, qkv, *s.expected, slots, positions, o);
  actual_.H3Step(*w.actual, Twin(qkv), *s.actual, Twin(slots), Twin(positions), Twin(o));
  Check("h3_step", o);
}

void CheckingBackend::SsmSequence(const SsmWeights& weights, Tensor u, RecurrentState& state,
                                  const SequenceParts& parts, Tensor y) {
  Share(u);
  const auto& w = Both(weights);
  const auto& s = Both(state);
  expected_.SsmSequence(*w.expected, u, *s.expected, parts, y);
  actual_.SsmSequence(*w.actual, Twin(u), *s.actual, parts, Twin(y));
  Check("ssm_sequence", y, parts);
}

void CheckingBackend::SsmStep(const SsmWeights& weights, Tensor u, RecurrentState& state,
                              Tensor slots, Tensor y) {
  Share(u);
  const auto& w = Both(weights);
  const auto& s = Both(state);
  expected_.SsmStep(*w.expected, u, *s.expected, slots, y);
  actual_.SsmStep(*w.actual, Twin(u), *s.actual, Twin(slots), Twin(y));
  Check("ssm_step", y);
}

void CheckingBackend::LinearAttentionSequence(const LinearAttentionShape& shape, Tensor qkv,
                                              RecurrentState& state, const SequenceParts& parts,
                                              Tensor o) {
  Share(qkv);
  const auto& s = Both(state);
  expected_.LinearAttentionSequence(shape, qkv, *s.expected, parts, o);
  actual_.LinearAttentionSequence(shape, Twin(qkv), *s.actual, parts, Twin(o));
  Check("linear_attention_sequence", o, parts);
}

void CheckingBackend::LinearAttentionStep(const LinearAttentionShape& shape, Tensor qkv,
                                          RecurrentState& state, Tensor slots, Tensor o) {
  Share(qkv);
  const auto& s = Both(state);
  expected_.LinearAttentionStep(shape, qkv, *s.expected, slots, o);
  actual_.LinearAttentionStep(shape, Twin(qkv), *s.actual, Twin(slots), Twin(o));
  Check("linear_attention_step", o);
}

void CheckingBackend::AttentionSequence(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                        KeyValuePages& pages, Tensor page_tables,
                                        const SequenceParts& parts, Tensor o) {
  Share(qkv);
  const auto& p = Both(pages);
  expected_.AttentionSequence(shape, qkv, inv_freq, *p.expected, page_tables, parts, o);
  actual_.AttentionSequence(shape, Twin(qkv), Twin(inv_freq), *p.actual, Twin(page_tables), parts,
                            Twin(o));
  Check("attention_sequence", o, parts);
}

void CheckingBackend::AttentionStep(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                    KeyValuePages& pages, Tensor page_tables, Tensor positions,
                                    Tensor o) {
  Share(qkv);
  const auto& p = Both(pages);
  expected_.AttentionStep(shape, qkv, inv_freq, *p.expected, page_tables, positions, o);
  actual_.AttentionStep(shape, Twin(qkv), Twin(inv_freq), *p.actual, Twin(page_tables),
                        Twin(positions), Twin(o));
  Check("attention_step", o);
}

void CheckingBackend::LongConv(const LongConvWeights& weights, Tensor u, int64_t sequences,
                               Direction direction, Tensor y) {
  Share(u);
  const auto& w = Both(weights);
  expected_.LongConv(*w.expected, u, sequences, direction, y);
  actual_.LongConv(*w.actual, Twin(u), sequences, direction, Twin(y));
  Check(direction == Direction::kForward ? "long_conv forward" : "long_conv backward", y);
}

void CheckingBackend::BidirectionalAttention(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                             Tensor o) {
  Share(qkv);
  expected_.BidirectionalAttention(shape, qkv, mask, o);
  actual_.BidirectionalAttention(shape, Twin(qkv), Twin(mask), Twin(o));
  Check("bidirectional_attention", o);
}

void CheckingBackend::MeanPool(Tensor x, Tensor mask, Tensor y) {
  Share(x);
  expected_.MeanPool(x, mask, y);
  actual_.MeanPool(Twin(x), Twin(mask), Twin(y));
  Check("mean_pool", y);
}

void CheckingBackend::GatherRows(Tensor x, Tensor rows, Tensor y) {
  Share(x);
  expected_.GatherRows(x, rows, y);
  actual_.GatherRows(Twin(x), Twin(rows), Twin(y));
  Check("gather_rows", y);
}

void CheckingBackend::Sample(Tensor logits, int64_t vocab, Tensor rows,
                             const LogitAdjustments& adjustments, Tensor tokens) {
  Share(logits);
  expected_.Sample(logits, vocab, rows, adjustments, tokens);
  actual_.Sample(Twin(logits), vocab, Twin(rows),
                 {Twin(adjustments.offsets), Twin(adjustments.entries)}, Twin(tokens));
  CheckTokens(tokens);
}

void CheckingBackend::LogProbabilities(Tensor logits, int64_t vocab, Tensor tokens,
                                       Tensor likeliest, Tensor log_probabilities) {
  Share(logits);
  expected_.LogProbabilities(logits, vocab, tokens, likeliest, log_probabilities);
  actual_.LogProbabilities(Twin(logits), vocab, Twin(tokens), Twin(likeliest),
                           Twin(log_probabilities));
  Check("log_probabilities", log_probabilities);
}

}  // namespace hippodrome
