"""All programs of the corpus, by name."""

from __future__ import annotations

from programs import advice_activations as advice_activations
from programs import advice_arguments as advice_arguments
from programs import advice_inference as advice_inference
from programs import advice_oversized as advice_oversized
from programs import advice_padding as advice_padding
from programs import advice_results as advice_results
from programs import advice_unused as advice_unused
from programs import dense as dense
from programs import equinox_models as equinox_models
from programs import experts as experts
from programs import kernels as kernels
from programs import language_models as language_models
from programs import linen_models as linen_models
from programs import llama as llama
from programs import nnx_models as nnx_models
from programs import offloading as offloading
from programs import recommenders as recommenders
from programs import recurrent as recurrent
from programs import rings as rings
from programs import scheduling as scheduling
from programs import serving as serving
from programs import updates as updates
from programs import vision as vision
from programs.activations import frameworks as frameworks
from programs.activations import others as others
from programs.activations import transformers as transformers
from programs.case import ADVISED as ADVISED
from programs.case import CORPUS as CORPUS
from programs.unseen import fields as fields
from programs.unseen import images as images
from programs.unseen import languages as languages
from programs.unseen import sequences as sequences
from programs.unseen import sharded as sharded
from programs.unseen import structures as structures

PROGRAMS = CORPUS | ADVISED
