#include "tools/train/step/loss_terms.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hippodrome {
namespace {

OwnedTensor Indices(Tape& tape, std::span<const int32_t> values) {
  OwnedTensor indices = tape.NewIndices(1, static_cast<int64_t>(values.size()));
  tape.UploadIndices(values, indices);
  return indices;
}

// Logits that losses on the host read, and whose gradient they write.
class HostLogits {
 public:
  HostLogits(Tape& tape, const LastProduct& product)
      : tape_(tape),
        logits_(tape.NewTensor(product.features.rows, product.weights.out())),
        values_(static_cast<size_t>(product.features.rows * product.weights.out())),
        gradient_(values_.size()) {
    tape.Linear(product.features, product.weights, {.bias = product.bias}, logits_);
    tape.Download(logits_, values_);
  }

  const std::vector<float>& values() const { return values_; }
  std::vector<float>& gradient() { return gradient_; }
  void UploadGradient() { tape_.SetLossGradient(logits_, gradient_); }

 private:
  Tape& tape_;
  OwnedTensor logits_;
  std::vector<float> values_, gradient_;
};

// -log softmax(logits)[label] over n logits `step` apart, and scale times its gradient.
double ColumnCrossEntropy(const float* logits, int64_t n, int64_t step, int64_t label, double scale,
                          float* gradient) {
  double largest = logits[0];
  for (int64_t t = 1; t < n; ++t) largest = std::max<double>(largest, logits[t * step]);
  double sum = 0;
  for (int64_t t = 0; t < n; ++t) sum += std::exp(logits[t * step] - largest);
  for (int64_t t = 0; t < n; ++t) {
    const double p = std::exp(logits[t * step] - largest) / sum;
    gradient[t * step] = static_cast<float>(scale * (p - (t == label ? 1 : 0)));
  }
  return largest + std::log(sum) - logits[label * step];
}

}  // namespace

int64_t Labelled(std::span<const int32_t> labels) {
  return std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
}

BatchLoss CrossEntropy(Tape& tape, const LastProduct& product, std::span<const int32_t> labels,
                       double scale) {
  const OwnedTensor places = Indices(tape, labels);
  const OwnedTensor losses = tape.NewTensor(1, static_cast<int64_t>(labels.size()));
  tape.LinearCrossEntropy(product.features, product.weights, product.bias, places, scale, losses);
  std::vector<float> values(labels.size());
  tape.Download(losses, values);
  BatchLoss loss = {.terms = Labelled(labels)};
  for (const float value : values) loss.sum += value;
  return loss;
}

BatchLoss Judge(Tape& tape, const LastProduct& product, std::span<const int32_t> labels) {
  const HostLogits logits(tape, product);
  const int64_t columns = product.weights.out();
  BatchLoss loss;
  for (size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0) continue;
    const auto first = logits.values().begin() + static_cast<int64_t>(row) * columns;
    loss.correct += std::max_element(first, first + columns) - first == labels[row] ? 1 : 0;
    ++loss.judged;
  }
  return loss;
}

BatchLoss SquaredError(Tape& tape, const LastProduct& product, std::span<const float> targets,
                       double scale) {
  HostLogits logits(tape, product);
  BatchLoss loss = {.terms = static_cast<int64_t>(targets.size())};
  for (size_t i = 0; i < targets.size(); ++i) {
    const double error = double{logits.values()[i]} - targets[i];
    loss.sum += error * error;
    logits.gradient()[i] = static_cast<float>(2 * scale * error);
  }
  logits.UploadGradient();
  return loss;
}

LossTerms AnswerTerms(int64_t sequences, int64_t length, std::span<const int32_t> answers) {
  double inside[2] = {0, 0};
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] >= 0 && answers[i] < length) ++inside[i % 2];
  }
  const auto weight = [&](double count) {
    return count == 0 ? 0 : static_cast<double>(sequences) / count;
  };
  return {.count = sequences, .first = weight(inside[0]), .last = weight(inside[1])};
}

BatchLoss SpanCrossEntropy(Tape& tape, const LastProduct& product, int64_t sequences,
                           std::span<const int32_t> answers, const LossTerms& terms) {
  HostLogits logits(tape, product);
  const int64_t length = product.features.rows / sequences;
  BatchLoss loss = {.terms = sequences};
  for (int64_t i = 0; i < 2 * sequences; ++i) {
    const int32_t token = answers[static_cast<size_t>(i)];
    if (token < 0 || token >= length) continue;
    const double weight = (i % 2 == 0 ? terms.first : terms.last) / 2;
    const int64_t at = i / 2 * length * 2 + i % 2;
    loss.sum += weight * ColumnCrossEntropy(&logits.values()[at], length, 2, token,
                                            weight * terms.scale(), &logits.gradient()[at]);
  }
  logits.UploadGradient();
  return loss;
}

}  // namespace hippodrome
