"""Client of Hippodrome, an inference server for state-space language models, over HTTP and gRPC."""

from .client import AsyncClient, AsyncConversation, AsyncStream, Client, Conversation, Stream
from .conversation import Turn
from .errors import (AuthenticationError, HippodromeError, InvalidRequestError, NotFoundError, OtherAnswerError,
                     PermissionDeniedError, RequestTimeoutError, RetryError, ServerError, UnavailableError)
from .results import (Answer, Answers, Attempt, Candidate, Classification, Embedding, Entity, FilledMasks, Generation,
                      LabelScore, LikelyToken, Model, Piece, Score, State, StoredState, Tags, TokenScores, Usage)

__all__ = [
    "Answer", "Answers", "AsyncClient", "AsyncConversation", "AsyncStream", "Attempt", "AuthenticationError",
    "Candidate", "Classification", "Client", "Conversation", "Embedding", "Entity", "FilledMasks", "Generation",
    "HippodromeError", "InvalidRequestError", "LabelScore", "LikelyToken", "Model", "NotFoundError",
    "OtherAnswerError", "PermissionDeniedError", "Piece", "RequestTimeoutError", "RetryError", "Score",
    "ServerError", "State", "StoredState", "Stream", "Tags", "TokenScores", "Turn", "UnavailableError", "Usage",
]
