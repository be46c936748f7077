#include "kernels/tape/tape.h"

#include <algorithm>
#include <utility>

#include "kernels/tape/trained_handles.h"

namespace hippodrome {

Tape::Tape(TrainingBackend& backend, Parameters& parameters, const TapeOptions& options)
    : backend_(backend), parameters_(parameters), options_(options), memory_(backend) {}

void Tape::Begin(uint64_t seed) {
  record_.clear();
  memory_.UnsetAll();
  for (const auto& trained : trained_) trained->pending = 0;
  mode_ = Mode::kRecording;
  seed_ = seed;
  drops_ = 0;
}

void Tape::Recompute(Tensor carried, const std::function<void()>& part) {
  if (!recording()) return part();
  auto before = memory_.Save(carried);
  const uint64_t drops = drops_;
  mode_ = Mode::kRecomputed;
  part();
  mode_ = Mode::kRecording;
  record_.push_back([this, carried, before, part, drops] {
    backend_.Copy(before->view, carried);
    std::vector<Undo> record;
    std::swap(record, record_);
    mode_ = Mode::kRecording;
    again_ = true;
    drops_ = drops;
    part();
    again_ = false;
    mode_ = Mode::kOff;
    std::swap(record, record_);
    GoBack(record);
  });
}

void Tape::GoBack(std::vector<Undo>& record) {
  while (!record.empty()) {
    const Undo undo = std::move(record.back());
    record.pop_back();
    undo();
  }
}

Tape::Handles Tape::Expect(TrainedHandle* w, std::initializer_list<Tensor> rows) {
  if (mode_ == Mode::kOff) return {};
  Handles adds;
  if (w != nullptr) adds.push_back(w);
  for (const Tensor& x : rows) {
    const auto holds = std::ranges::find_if(rows_, [&](const auto* one) { return one->Holds(x); });
    if (holds != rows_.end()) adds.push_back(*holds);
  }
  if (!again_) {
    for (TrainedHandle* handle : adds) ++handle->pending;
  }
  return adds;
}

void Tape::Record(Handles adds, Undo undo) {
  record_.push_back([this, undo = std::move(undo), adds = std::move(adds)] {
    undo();
    Complete(adds);
  });
}

void Tape::Complete(const Handles& added) {
  for (TrainedHandle* handle : added) {
    if (--handle->pending > 0 || !on_complete_) continue;
    handle->Collect();
    for (const Parameter* parameter : handle->parameters()) on_complete_(*parameter);
  }
}

void Tape::OnCompleteGradient(std::function<void(const Parameter&)> call) {
  on_complete_ = std::move(call);
}

void Tape::Backward() {
  mode_ = Mode::kOff;
  GoBack(record_);
  memory_.UnsetAll();
}

void Tape::SetLossGradient(Tensor x, std::span<const float> dx) {
  if (recording()) backend_.Upload(dx, memory_.Into(x).tensor);
}

void Tape::CollectGradients() {
  for (const auto& trained : trained_) trained->Collect();
}

void Tape::ZeroGradients() {
  for (Parameter& parameter : parameters_.all()) {
    if (parameter.gradient.data != nullptr) backend_.Fill(0, parameter.gradient);
  }
}

void Tape::Update() {
  for (const auto& trained : trained_) trained->Update();
}

// ---- Memory ------------------------------------------------------------------------------------

OwnedTensor Tape::Known(OwnedTensor matrix) {
  // What is recorded may need a matrix that the model has let go of.
  if (mode_ == Mode::kOff) memory_.DropUnused();
  memory_.Register(matrix);
  return matrix;
}

OwnedTensor Tape::NewTensor(int64_t rows, int64_t cols) {
  return Known(backend_.NewTensor(rows, cols));
}

OwnedTensor Tape::NewActivations(int64_t rows, int64_t cols, DType weights) {
  return Known(backend_.NewActivations(rows, cols, weights));
}

OwnedTensor Tape::NewIndices(int64_t rows, int64_t cols) { return backend_.NewIndices(rows, cols); }

void Tape::Upload(std::span<const float> values, Tensor dst) {
  memory_.BeforeWrite(dst);
  backend_.Upload(values, dst);
  Parameter* parameter = parameters_.At(values);
  if (parameter == nullptr) return;
  memory_.MakeParameter(dst);
  const auto rows =
      std::make_shared<TrainedRows>(backend_, *parameter, dst, memory_.OfParameter(dst));
  trained_.push_back(rows);
  rows_.push_back(rows.get());
}

void Tape::UploadIndices(std::span<const int32_t> values, Tensor dst) {
  backend_.UploadIndices(values, dst);
}

void Tape::Download(Tensor src, std::span<float> values) { backend_.Download(src, values); }

void Tape::DownloadIndices(Tensor src, std::span<int32_t> values) {
  backend_.DownloadIndices(src, values);
}

// ---- Handles -----------------------------------------------------------------------------------

std::unique_ptr<LinearWeights> Tape::PackLinear(std::span<const HostMatrix> parts, DType dtype) {
  auto trained = std::make_shared<TrainedLinear>(backend_, parameters_, parts, dtype);
  trained_.push_back(trained);
  return std::make_unique<TapedLinear>(std::move(trained));
}

std::unique_ptr<H3Weights> Tape::PrepareH3(const H3Parameters& parameters, DType weights) {
  auto trained =
      std::make_shared<TrainedH3>(backend_, parameters_, parameters, options_.longest, weights);
  trained_.push_back(trained);
  return std::make_unique<TapedH3>(std::move(trained));
}

std::unique_ptr<LongConvWeights> Tape::PrepareLongConv(const LongConvParameters& parameters,
                                                       int64_t longest, DType weights) {
  auto trained = std::make_shared<TrainedLongConv>(backend_, parameters_, parameters,
                                                   std::min(longest, options_.longest), weights);
  trained_.push_back(trained);
  return std::make_unique<TapedLongConv>(std::move(trained));
}

std::unique_ptr<SsmWeights> Tape::PrepareSsm(const LongConvParameters& parameters, DType weights) {
  auto trained = std::make_shared<TrainedLongConv>(backend_, parameters_, parameters,
                                                   options_.longest, weights);
  trained_.push_back(trained);
  return std::make_unique<TapedSsm>(std::move(trained));
}

std::unique_ptr<RecurrentState> Tape::NewSsmState(const SsmWeights& /*weights*/, int64_t slots) {
  return std::make_unique<EmptyState>(slots);
}

std::unique_ptr<RecurrentState> Tape::NewLinearAttentionState(const LinearAttentionShape& /*shape*/,
                                                              int64_t slots) {
  return std::make_unique<EmptyState>(slots);
}

std::unique_ptr<RecurrentState> Tape::NewH3State(const H3Weights& /*weights*/, int64_t slots,
                                                 DType /*type*/) {
  return std::make_unique<EmptyState>(slots);
}

std::unique_ptr<KeyValuePages> Tape::NewKeyValuePages(const AttentionShape& /*shape*/,
                                                      int64_t pages, int64_t page_tokens,
                                                      DType /*weights*/) {
  return std::make_unique<EmptyPages>(pages, page_tokens);
}

}  // namespace hippodrome
