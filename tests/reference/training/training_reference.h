// The training half of the reference: every operation of kernels/training_backend.h as its
// equation, in double precision, one element at a time. Gradients are f64.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_TRAINING_REFERENCE_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_TRAINING_REFERENCE_H_

#include "kernels/training_backend.h"

namespace hippodrome::reference {

// What it shares with serving is left to the deriving class.
class TrainingReference : public TrainingBackend {
 public:
  std::unique_ptr<LinearWeights> NewTrainedLinear(int64_t out, int64_t in, DType dtype) override;
  void PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) override;
  void LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor dy,
                      const LinearGradients& gradients) override;
  void LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                          double scale, Tensor losses, const LinearGradients* gradients) override;

  std::unique_ptr<H3ConvolutionWeights> PrepareH3Convolution(const H3Parameters& parameters,
                                                             int64_t longest,
                                                             DType weights) override;
  void H3Convolution(const H3ConvolutionWeights& weights, Tensor qkv, int64_t sequences,
                     Tensor o) override;
  std::unique_ptr<H3Gradients> NewH3Gradients(const H3ConvolutionWeights& weights) override;
  void H3ConvolutionBackward(const H3ConvolutionWeights& weights, Tensor qkv, int64_t sequences,
                             Tensor d_o, Gradient dqkv, H3Gradients& sums) override;
  void TakeH3Gradients(const H3ConvolutionWeights& weights, const H3Parameters& parameters,
                       H3Gradients& sums, const H3ParameterGradients& gradients) override;

  std::unique_ptr<LongConvGradients> NewLongConvGradients(const LongConvWeights& weights) override;
  void LongConvBackward(const LongConvWeights& weights, Tensor u, int64_t sequences,
                        Direction direction, Tensor dy, Gradient du,
                        LongConvGradients& sums) override;
  void TakeLongConvGradients(const LongConvWeights& weights, const LongConvParameters& parameters,
                             LongConvGradients& sums,
                             const LongConvParameterGradients& gradients) override;

  void CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq, int64_t sequences,
                       const AttentionDropout& dropout, Tensor o) override;
  void CausalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                               int64_t sequences, const AttentionDropout& dropout, Tensor d_o,
                               Gradient dqkv) override;
  void BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                      Tensor d_o, Gradient dqkv) override;

  void CausalLinearAttention(const LinearAttentionShape& shape, Tensor qkv, int64_t sequences,
                             Tensor o) override;
  void CausalLinearAttentionBackward(const LinearAttentionShape& shape, Tensor qkv,
                                     int64_t sequences, Tensor d_o, Gradient dqkv) override;

  void LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy, Gradient dx,
                         Tensor dgamma, Tensor dbeta) override;
  void ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                        Gradient dgate) override;
  void ScatterRows(Tensor dy, Tensor indices, Tensor dtable) override;
  void MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) override;
  void Drop(double p, uint64_t seed, Tensor x) override;

  void Fill(float value, Tensor x) override;
  void Copy(Tensor x, Tensor y) override;
  void Add(Tensor x, Tensor y) override;
  double SumOfSquares(Tensor x) override;
  void AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) override;
  void MovingAverage(Tensor x, double decay, Tensor average) override;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_TRAINING_REFERENCE_H_
