"""Baselines: dense, BM25, hybrid and reranked retrieval."""

from clew.retrieve.lookup import Dense, Lexical
from clew.retrieve.rank import fuse_chunks
from clew.retrieve.rerank import Reranked
from clew.retrieve.step import Chain, Fork

NAIVE = Chain(
    "naive",
    (Dense(top_k=100),),
    about="passages by the meaning of their text",
    source="dense retrieval",
)
BM25 = Chain(
    "bm25",
    (Lexical(top_k=100, k1=1.2, b=0.75),),
    about="passages by the question's words",
    source="Robertson and Zaragoza 2009",
)
RERANKED = Chain(
    "hybrid-rerank",
    (Fork((Dense(top_k=100), Lexical(top_k=100)), join=fuse_chunks), Reranked(top_k=30)),
    about="`hybrid`, and the best read once more by a cross-encoder",
    source="Nogueira and Cho 2019",
)
HYBRID = Chain(
    "hybrid",
    (Fork((Dense(top_k=100), Lexical(top_k=100)), join=fuse_chunks),),
    about="`naive` and `bm25`, fused by reciprocal rank",
    source="Cormack et al. 2009",
)
