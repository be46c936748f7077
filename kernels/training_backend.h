// What training adds to the vocabulary of backend.h: the backward of every operation that models
// are trained with, and the operations of an optimizer.
//
// Conventions.
//  * dx stands for d loss / d x. Gradients are matrices of the type that NewTensor() gives (f32, in
//    the reference f64), of the shape of what they are the gradient of.
//  * A backward takes the inputs of its forward as they were when that ran and the gradient of its
//    output, and gives the gradients of its inputs. Nothing else is kept from the forward:
//    backwards compute again what they need (H3, appendix; FlashConv).
//  * A Gradient is replaced, or added to where `add` says so; one without data is not wanted.
//    Gradients of parameters are always added to, so that micro-batches and uses of a tied
//    parameter sum up.
//  * Gradients that are given must not overlap anything else, unless the contract says so.
//  * The same calls give the same bits, whatever the threads: sums over rows are cut in blocks of a
//    fixed size that are added in a fixed order.
//  * Error bounds: a gradient that is a product or a sum has the bound of the forward operation of
//    the same form; bf16 products round both operands to bf16 and sum in f32.
// Threads, preconditions and failures: as in backend.h.
#ifndef HIPPODROME_KERNELS_TRAINING_BACKEND_H_
#define HIPPODROME_KERNELS_TRAINING_BACKEND_H_

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/backend.h"

namespace hippodrome {

// Where the gradient of an input goes.
struct Gradient {
  Tensor tensor;     // data null: not wanted
  bool add = false;  // to what is there, instead of replacing it
};

// What Backend::Linear was given, and where its gradients go.
struct LinearGradients {
  Gradient x;      // [rows, in]
  Tensor weights;  // [out, in], added to; or empty
  Tensor bias;     // [1, out], added to; or empty
  Gradient gate;   // [rows, out]; may be dy itself, which is then replaced
};

// d loss / d parameter of an H3 layer, shapes as in H3Parameters.
struct H3ParameterGradients {
  std::span<float> shift_b, shift_c, shift_d;
  std::span<float> d, log_dt, inv_a_real, a_imag, b, c;
};

// d loss / d parameter of the SSM of a convolution, shapes as in LongConvParameters; spans of
// parameters that it lacks are empty.
struct LongConvParameterGradients {
  std::span<float> a_real, a_imag, c, log_step, d;
  std::span<float> b, p;  // of an NPLR kernel
};

// The kernels of one H3 layer for whole sequences, in the form in which H3Convolution() uses them.
class H3ConvolutionWeights {
 public:
  virtual ~H3ConvolutionWeights() = default;
  virtual int64_t bytes() const = 0;
};

// d loss / d (taps, kernels, skips) of one H3 layer, summed over calls on the device.
class H3Gradients {
 public:
  virtual ~H3Gradients() = default;
};

// d loss / d (kernels, skips) of one LongConvWeights, summed over calls on the device.
class LongConvGradients {
 public:
  virtual ~LongConvGradients() = default;
};

// One step of AdamW (Loshchilov and Hutter, 2019), PyTorch's form:
//   g = gradient_scale dw;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w = w - rate weight_decay w
//   w = w - rate (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + epsilon)
struct AdamWStep {
  double rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double gradient_scale = 1;  // clipping
  int64_t step = 1;           // from 1
};

// Dropout of the weights P of attention over T tokens: P_ts of head h of sequence b becomes 0 with
// probability p, else P_ts / (1 - p), drawn by (seed, (b heads + h) T + t, s) alone.
struct AttentionDropout {
  double p = 0;  // in [0, 1); 0: none
  uint64_t seed = 0;
};

class TrainingBackend : public Backend {
 public:
  // Makes the calling thread one that may use this backend. Only a thread that is new, or has used
  // another backend since, needs that, and only where there are several devices.
  virtual void BindThread() {}

  // ---- Linear --------------------------------------------------------------------------------

  // A matrix [out, in] that products and their backwards take, zero until packed.
  virtual std::unique_ptr<LinearWeights> NewTrainedLinear(int64_t out, int64_t in, DType dtype) = 0;
  // Packs `parts`, NewTensor() matrices [size, in] stacked by rows to [out, in], into `w`, which
  // NewTrainedLinear() made; kBF16 rounds to nearest even.
  virtual void PackTrainedLinear(std::span<const Tensor> parts, LinearWeights& w) = 0;

  // z = x W^T + bias, y = activation(z) * gate + residual:
  //   dz = dy * gate * activation'(z);  dx = dz W;  dW += dz^T x;  dbias += sum_rows dz
  //   dgate = dy * activation(z)
  // The residual's gradient is dy itself. x: as for Linear(); dy: [rows, out]; `epilogue`: as it
  // was, where the residual is not read; w: from NewTrainedLinear().
  virtual void LinearBackward(Tensor x, const LinearWeights& w, const Epilogue& epilogue, Tensor dy,
                              const LinearGradients& gradients) = 0;

  // loss_i = -log softmax(x_i W^T + bias)[labels_i], and the gradients of scale * sum_i loss_i; the
  // logits of all rows are never in memory together. labels: kI32 [1, rows], in [0, out), or -1 for
  // a row that neither counts nor has gradients; losses: [1, rows]; `gradients`: null computes
  // losses only.  x: activations [rows, in]; bias: of NewTensor() type or empty.
  virtual void LinearCrossEntropy(Tensor x, const LinearWeights& w, Tensor bias, Tensor labels,
                                  double scale, Tensor losses,
                                  const LinearGradients* gradients) = 0;

  // ---- H3 ------------------------------------------------------------------------------------

  // As PrepareH3(), for H3Convolution() of up to `longest` tokens.
  virtual std::unique_ptr<H3ConvolutionWeights> PrepareH3Convolution(const H3Parameters& parameters,
                                                                     int64_t longest,
                                                                     DType weights) = 0;
  // What H3Sequence() computes from empty states, without leaving any. qkv: [B T, 3 d], o: [B T,
  // d], B = `sequences`. REQUIRES: T <= longest.
  virtual void H3Convolution(const H3ConvolutionWeights& weights, Tensor qkv, int64_t sequences,
                             Tensor o) = 0;
  virtual std::unique_ptr<H3Gradients> NewH3Gradients(const H3ConvolutionWeights& weights) = 0;
  // dqkv, and into `sums` those of the taps, the kernel K and both skips (with r = dq-gated do):
  //   r = q do;  dq = y do;  dkv_t = sum_{s >= t} K[s - t] r_s + D r_t;  dK[l] += sum r_t kv_{t-l}
  //   dks = dkv v;  dv = dkv ks;  dk = corr(taps, dks) + shift_d dks;  dtaps[j] += sum dks_t
  //   k_{t-j}
  virtual void H3ConvolutionBackward(const H3ConvolutionWeights& weights, Tensor qkv,
                                     int64_t sequences, Tensor d_o, Gradient dqkv,
                                     H3Gradients& sums) = 0;
  // Replaces `gradients` by `sums` carried through the kernels' formulas in double, and zeroes
  // `sums`. `parameters`: those that `weights` were prepared from. Waits for pending work.
  virtual void TakeH3Gradients(const H3ConvolutionWeights& weights, const H3Parameters& parameters,
                               H3Gradients& sums, const H3ParameterGradients& gradients) = 0;

  // ---- Long convolution ----------------------------------------------------------------------

  virtual std::unique_ptr<LongConvGradients> NewLongConvGradients(
      const LongConvWeights& weights) = 0;
  // kForward:  du_t = D dy_t + sum_l K[l] dy_{t+l};  dK[l] += sum_t dy_t u_{t-l};  dD += sum dy u
  // kBackward: the same in reversed time. `sums`: of NewLongConvGradients() of these weights.
  virtual void LongConvBackward(const LongConvWeights& weights, Tensor u, int64_t sequences,
                                Direction direction, Tensor dy, Gradient du,
                                LongConvGradients& sums) = 0;
  // As TakeH3Gradients().
  virtual void TakeLongConvGradients(const LongConvWeights& weights,
                                     const LongConvParameters& parameters, LongConvGradients& sums,
                                     const LongConvParameterGradients& gradients) = 0;

  // ---- Attention -----------------------------------------------------------------------------

  // What AttentionSequence() computes from position 0 without leaving rows in pages, its weights
  // after `dropout`. qkv: [B T, 3 d], B = `sequences`; o: [B T, d].
  virtual void CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                               int64_t sequences, const AttentionDropout& dropout, Tensor o) = 0;
  // `dropout`: that of the forward.
  virtual void CausalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                       int64_t sequences, const AttentionDropout& dropout,
                                       Tensor d_o, Gradient dqkv) = 0;
  // Of Backend::BidirectionalAttention; masked keys and values have no gradient.
  virtual void BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor mask,
                                              Tensor d_o, Gradient dqkv) = 0;

  // What LinearAttentionSequence() computes from empty states, without leaving any. qkv: [B T, 3
  // d], B = `sequences`; o: [B T, d].
  virtual void CausalLinearAttention(const LinearAttentionShape& shape, Tensor qkv,
                                     int64_t sequences, Tensor o) = 0;
  // With D_t the denominator of o_t, per head:
  //   dN_t = do_t / D_t;  dD_t = -(do_t . o_t) / D_t
  //   dphi(q_t) = S_t dN_t + z_t dD_t
  //   G_t = sum_{s >= t} phi(q_s) dN_s^T;  g_t = sum_{s >= t} phi(q_s) dD_s
  //   dphi(k_t) = G_t v_t + g_t;  dv_t = G_t^T phi(k_t);  phi'(x) = min(phi(x), 1)
  virtual void CausalLinearAttentionBackward(const LinearAttentionShape& shape, Tensor qkv,
                                             int64_t sequences, Tensor d_o, Gradient dqkv) = 0;

  // ---- Rows ----------------------------------------------------------------------------------

  // Of Backend::LayerNorm. dgamma, dbeta: [1, d], added to. dx may be dy, which is then replaced.
  virtual void LayerNormBackward(Tensor x, Tensor gamma, double epsilon, Tensor dy, Gradient dx,
                                 Tensor dgamma, Tensor dbeta) = 0;
  // Of Backend::Activate: dx = dy * gate * activation'(x); dgate = dy * activation(x); the
  // residual's gradient is dy itself. x: as for Activate(), of f32 here; `epilogue`: as it was,
  // where the residual is not read; dx may be dy.
  virtual void ActivateBackward(Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                                Gradient dgate) = 0;
  // Row i of dy is added to row indices_i of dtable; -1 adds nothing. indices: kI32 [1, rows];
  // dtable: [n, d]. What Backend::Embedding needs for each of its tables.
  virtual void ScatterRows(Tensor dy, Tensor indices, Tensor dtable) = 0;
  // Of Backend::MeanPool. dy: [B, d]; dx: [B T, d].
  virtual void MeanPoolBackward(Tensor mask, Tensor dy, Gradient dx) = 0;
  // x_ij = 0 with probability p, else x_ij / (1 - p), drawn by (seed, i, j) alone: its own
  // backward.
  virtual void Drop(double p, uint64_t seed, Tensor x) = 0;

  // ---- Memory and optimizer, on f32 (reference: f64) matrices ----------------------------------

  virtual void Fill(float value, Tensor x) = 0;
  // y = x, of either type each.
  virtual void Copy(Tensor x, Tensor y) = 0;
  // y = y + x.
  virtual void Add(Tensor x, Tensor y) = 0;
  // sum_ij x_ij^2, in double. Waits for pending work.
  virtual double SumOfSquares(Tensor x) = 0;
  // gradient, m, v, w: of one shape.
  virtual void AdamW(const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w) = 0;
  // average = decay average + (1 - decay) x.
  virtual void MovingAverage(Tensor x, double decay, Tensor average) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TRAINING_BACKEND_H_
