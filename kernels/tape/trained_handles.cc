#include "kernels/tape/trained_handles.h"

#include <array>
#include <stdexcept>

namespace hippodrome {
namespace {

Parameter& Known(Parameters& parameters, std::span<const float> values) {
  Parameter* parameter = parameters.At(values);
  if (parameter == nullptr) throw std::logic_error("tape: weights that are no parameters");
  return *parameter;
}

// The order of the spans of each description, which SsmParameters keeps.
std::array<std::span<const float>, 9> Spans(const H3Parameters& p) {
  return {p.shift_b, p.shift_c, p.shift_d, p.d, p.log_dt, p.inv_a_real, p.a_imag, p.b, p.c};
}

std::array<std::span<const float>, 7> Spans(const LongConvParameters& ssm) {
  if (const auto* p = std::get_if<NplrParameters>(&ssm)) {
    return {p->a_real, p->a_imag, p->c, p->log_step, p->d, p->b, p->p};
  }
  const auto& p = std::get<SharedSsmParameters>(ssm);
  return {p.a_real, p.a_imag, p.c, p.log_step, p.d};
}

}  // namespace

TrainedLinear::TrainedLinear(TrainingBackend& backend_of, Parameters& parameters,
                             std::span<const HostMatrix> parts, DType dtype)
    : backend(backend_of) {
  int64_t out = 0;
  for (const HostMatrix& part : parts) out += part.rows;
  weights = backend.NewTrainedLinear(out, parts[0].cols, dtype);
  gradient = backend.NewTensor(out, parts[0].cols);
  int64_t row = 0;
  for (const HostMatrix& part : parts) {
    const auto* first = static_cast<const float*>(part.data);
    Parameter& parameter = Known(parameters, {first, static_cast<size_t>(part.rows * part.cols)});
    values_.push_back(parameter.value);
    parameter.gradient = gradient.view.Rows(row, part.rows);
    row += part.rows;
  }
  Update();
}

void TrainedLinear::Update() { backend.PackTrainedLinear(values_, *weights); }

TrainedRows::TrainedRows(TrainingBackend& backend, Parameter& parameter, Tensor place,
                         Tensor gradient)
    : backend_(backend), parameter_(parameter), place_(place) {
  parameter.gradient = gradient;
}

void TrainedRows::Update() { backend_.Copy(parameter_.value, place_); }

SsmParameters::SsmParameters(TrainingBackend& backend, Parameters& parameters,
                             std::span<const std::span<const float>> host)
    : backend_(backend), parameters_(parameters), fields_(host.size()) {
  for (size_t i = 0; i < host.size(); ++i) {
    if (host[i].empty()) continue;
    Field& field = fields_[i];
    field.parameter = &Known(parameters, host[i]);
    field.staged.resize(host[i].size());
    const Tensor value = field.parameter->value;
    field.gradient = backend.NewTensor(value.rows, value.cols);
    field.parameter->gradient = field.gradient;
  }
}

void SsmParameters::Fetch() {
  for (Field& field : fields_) {
    if (field.parameter != nullptr) parameters_.Fetch(*field.parameter);
  }
}

void SsmParameters::Upload() {
  for (Field& field : fields_) {
    if (field.parameter != nullptr) backend_.Upload(field.staged, field.gradient);
  }
}

TrainedH3::TrainedH3(TrainingBackend& backend, Parameters& parameters, const H3Parameters& ssm,
                     int64_t longest, DType dtype)
    : weights(backend.PrepareH3Convolution(ssm, longest, dtype)),
      sums(backend.NewH3Gradients(*weights)),
      backend_(backend),
      ssm_(ssm),
      parameters_(backend, parameters, Spans(ssm)),
      longest_(longest),
      dtype_(dtype) {}

void TrainedH3::Update() {
  parameters_.Fetch();
  weights = backend_.PrepareH3Convolution(ssm_, longest_, dtype_);
}

void TrainedH3::Collect() {
  const auto at = [&](size_t i) { return parameters_.staged(i); };
  backend_.TakeH3Gradients(*weights, ssm_, *sums,
                           {.shift_b = at(0),
                            .shift_c = at(1),
                            .shift_d = at(2),
                            .d = at(3),
                            .log_dt = at(4),
                            .inv_a_real = at(5),
                            .a_imag = at(6),
                            .b = at(7),
                            .c = at(8)});
  parameters_.Upload();
}

TrainedLongConv::TrainedLongConv(TrainingBackend& backend, Parameters& parameters,
                                 const LongConvParameters& ssm, int64_t longest, DType dtype)
    : weights(backend.PrepareLongConv(ssm, longest, dtype)),
      sums(backend.NewLongConvGradients(*weights)),
      backend_(backend),
      ssm_(ssm),
      parameters_(backend, parameters, Spans(ssm)),
      longest_(longest),
      dtype_(dtype) {}

void TrainedLongConv::Update() {
  parameters_.Fetch();
  weights = backend_.PrepareLongConv(ssm_, longest_, dtype_);
}

void TrainedLongConv::Collect() {
  const auto at = [&](size_t i) { return parameters_.staged(i); };
  backend_.TakeLongConvGradients(*weights, ssm_, *sums,
                                 {.a_real = at(0),
                                  .a_imag = at(1),
                                  .c = at(2),
                                  .log_step = at(3),
                                  .d = at(4),
                                  .b = at(5),
                                  .p = at(6)});
  parameters_.Upload();
}

}  // namespace hippodrome
