// The answers of models as tensors of the Open Inference Protocol.
#ifndef HIPPODROME_SERVER_HANDLERS_INFERENCE_OUTPUTS_H_
#define HIPPODROME_SERVER_HANDLERS_INFERENCE_OUTPUTS_H_

#include <string>

#include "hippodrome/v1/encoding.pb.h"
#include "hippodrome/v1/models.pb.h"
#include "inference/open_inference.pb.h"

namespace hippodrome {

// What a model takes and gives: the names, datatypes and shapes of all tensors below.
inference::ModelMetadataResponse DescribeTensors(const v1::Model& model);

// Each gives all outputs of its task; n inputs.
//   sequence classification: scores FP32 [n, labels] in the order of the labels, labels BYTES
//                            [labels], label BYTES [n], the best one
//   multiple choice:         scores FP32 [n]
inference::ModelInferResponse ScoreTensors(const v1::Model& model,
                                           const v1::ClassifyResponse& response);
//   embedding FP32 [n, d]
inference::ModelInferResponse EmbeddingTensors(const v1::EmbedResponse& response);
//   of all e entities: input INT32 [e], label BYTES [e], score FP32 [e], word BYTES [e], start
//   INT64 [e], end INT64 [e], code points
inference::ModelInferResponse EntityTensors(const v1::TagTokensResponse& response);
//   of all m masks, k candidates each: input INT32 [m], token BYTES [m, k], token_id INT32 [m, k],
//   score FP32 [m, k]
inference::ModelInferResponse CandidateTensors(const v1::FillMaskResponse& response);
//   the best answers: answer BYTES [n], score FP32 [n], start INT64 [n], end INT64 [n]
inference::ModelInferResponse AnswerTensors(const v1::AnswerQuestionResponse& response);
//   text_output BYTES [1]
inference::ModelInferResponse TextTensor(const std::string& text);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_INFERENCE_OUTPUTS_H_
