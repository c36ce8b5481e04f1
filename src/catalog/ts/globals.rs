//! Names that a program already has without mcpx, so that no namespace is put in
//! their place. Lists of facts, nothing else.

/// The global names of deno, bun and node (18 to 26), sorted by bytes: a namespace
/// with one of these identifiers is reached as `tools.fetch` or by import, never as a bare `fetch`.
pub const JS_GLOBALS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncDisposableStack",
    "Atomics",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Blob",
    "Boolean",
    "BroadcastChannel",
    "Buffer",
    "BuildError",
    "BuildMessage",
    "Bun",
    "ByteLengthQueuingStrategy",
    "Cache",
    "CacheStorage",
    "CloseEvent",
    "CompressionStream",
    "CountQueuingStrategy",
    "Crypto",
    "CryptoKey",
    "CustomEvent",
    "DOMException",
    "DOMMatrix",
    "DOMMatrixReadOnly",
    "DOMPoint",
    "DOMPointReadOnly",
    "DOMQuad",
    "DOMRect",
    "DOMRectReadOnly",
    "DataView",
    "Date",
    "DecompressionStream",
    "Deno",
    "DisposableStack",
    "Error",
    "ErrorEvent",
    "EvalError",
    "Event",
    "EventSource",
    "EventTarget",
    "File",
    "FileReader",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "FormData",
    "Function",
    "GPU",
    "GPUAdapter",
    "GPUAdapterInfo",
    "GPUBindGroup",
    "GPUBindGroupLayout",
    "GPUBuffer",
    "GPUBufferUsage",
    "GPUCanvasContext",
    "GPUColorWrite",
    "GPUCommandBuffer",
    "GPUCommandEncoder",
    "GPUCompilationInfo",
    "GPUCompilationMessage",
    "GPUComputePassEncoder",
    "GPUComputePipeline",
    "GPUDevice",
    "GPUDeviceLostInfo",
    "GPUError",
    "GPUInternalError",
    "GPUMapMode",
    "GPUOutOfMemoryError",
    "GPUPipelineError",
    "GPUPipelineLayout",
    "GPUQuerySet",
    "GPUQueue",
    "GPURenderBundle",
    "GPURenderBundleEncoder",
    "GPURenderPassEncoder",
    "GPURenderPipeline",
    "GPUSampler",
    "GPUShaderModule",
    "GPUShaderStage",
    "GPUSupportedFeatures",
    "GPUSupportedLimits",
    "GPUTexture",
    "GPUTextureUsage",
    "GPUTextureView",
    "GPUUncapturedErrorEvent",
    "GPUValidationError",
    "HTMLRewriter",
    "Headers",
    "ImageBitmap",
    "ImageBitmapRenderingContext",
    "ImageData",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "Intl",
    "Iterator",
    "JSON",
    "Location",
    "Lock",
    "LockManager",
    "Map",
    "Math",
    "MessageChannel",
    "MessageEvent",
    "MessagePort",
    "NaN",
    "Navigator",
    "NavigatorUAData",
    "Number",
    "Object",
    "OffscreenCanvas",
    "Performance",
    "PerformanceEntry",
    "PerformanceMark",
    "PerformanceMeasure",
    "PerformanceObserver",
    "PerformanceObserverEntryList",
    "PerformanceResourceTiming",
    "PerformanceServerTiming",
    "PerformanceTiming",
    "ProgressEvent",
    "Promise",
    "PromiseRejectionEvent",
    "Proxy",
    "QuotaExceededError",
    "RangeError",
    "ReadableByteStreamController",
    "ReadableStream",
    "ReadableStreamBYOBReader",
    "ReadableStreamBYOBRequest",
    "ReadableStreamDefaultController",
    "ReadableStreamDefaultReader",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Request",
    "ResolveError",
    "ResolveMessage",
    "Response",
    "Set",
    "ShadowRealm",
    "SharedArrayBuffer",
    "Storage",
    "String",
    "SubtleCrypto",
    "SuppressedError",
    "Symbol",
    "SyntaxError",
    "Temporal",
    "TextDecoder",
    "TextDecoderStream",
    "TextEncoder",
    "TextEncoderStream",
    "TransformStream",
    "TransformStreamDefaultController",
    "TypeError",
    "URIError",
    "URL",
    "URLPattern",
    "URLSearchParams",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "WebAssembly",
    "WebSocket",
    "Window",
    "Worker",
    "WritableStream",
    "WritableStreamDefaultController",
    "WritableStreamDefaultWriter",
    "__dirname",
    "__filename",
    "addEventListener",
    "alert",
    "atob",
    "btoa",
    "caches",
    "clearImmediate",
    "clearInterval",
    "clearTimeout",
    "close",
    "closed",
    "confirm",
    "console",
    "constructor",
    "createImageBitmap",
    "crypto",
    "decodeURI",
    "decodeURIComponent",
    "dispatchEvent",
    "document",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "eval",
    "exports",
    "fetch",
    "gc",
    "global",
    "globalThis",
    "hasOwnProperty",
    "isFinite",
    "isNaN",
    "isPrototypeOf",
    "localStorage",
    "location",
    "module",
    "name",
    "navigator",
    "onbeforeunload",
    "onerror",
    "onload",
    "onmessage",
    "onunhandledrejection",
    "onunload",
    "parseFloat",
    "parseInt",
    "performance",
    "postMessage",
    "process",
    "prompt",
    "propertyIsEnumerable",
    "queueMicrotask",
    "removeEventListener",
    "reportError",
    "require",
    "self",
    "sessionStorage",
    "setImmediate",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "toLocaleString",
    "toString",
    "undefined",
    "unescape",
    "valueOf",
    "window",
];

/// Further names that TypeScript's browser and worker libraries declare as values,
/// parted by spaces: a program may use them as a bare namespace, but a second
/// declaration of them does not compile, so the declarations leave them out.
const DOM_GLOBALS: &str = "\
    AbstractRange ActiveXObject AnalyserNode Animation AnimationEffect AnimationEvent \
    AnimationPlaybackEvent AnimationTimeline Attr Audio AudioBuffer AudioBufferSourceNode AudioContext \
    AudioData AudioDecoder AudioDestinationNode AudioEncoder AudioListener AudioNode AudioParam \
    AudioParamMap AudioProcessingEvent AudioScheduledSourceNode AudioWorklet AudioWorkletNode \
    AuthenticatorAssertionResponse AuthenticatorAttestationResponse AuthenticatorResponse BarProp \
    BaseAudioContext BeforeUnloadEvent BiquadFilterNode BlobEvent CDATASection CSPViolationReportBody \
    CSSAnimation CSSConditionRule CSSContainerRule CSSCounterStyleRule CSSFontFaceRule \
    CSSFontFeatureValuesRule CSSFontPaletteValuesRule CSSGroupingRule CSSImageValue CSSImportRule \
    CSSKeyframeRule CSSKeyframesRule CSSKeywordValue CSSLayerBlockRule CSSLayerStatementRule \
    CSSMathClamp CSSMathInvert CSSMathMax CSSMathMin CSSMathNegate CSSMathProduct CSSMathSum \
    CSSMathValue CSSMatrixComponent CSSMediaRule CSSNamespaceRule CSSNestedDeclarations CSSNumericArray \
    CSSNumericValue CSSPageDescriptors CSSPageRule CSSPerspective CSSPositionTryDescriptors \
    CSSPositionTryRule CSSPropertyRule CSSRotate CSSRule CSSRuleList CSSScale CSSScopeRule CSSSkew \
    CSSSkewX CSSSkewY CSSStartingStyleRule CSSStyleDeclaration CSSStyleProperties CSSStyleRule \
    CSSStyleSheet CSSStyleValue CSSSupportsRule CSSTransformComponent CSSTransformValue CSSTransition \
    CSSTranslate CSSUnitValue CSSUnparsedValue CSSVariableReferenceValue CSSViewTransitionRule \
    CanvasCaptureMediaStreamTrack CanvasGradient CanvasPattern CanvasRenderingContext2D CaretPosition \
    ChannelMergerNode ChannelSplitterNode CharacterData Client Clients Clipboard ClipboardEvent \
    ClipboardItem CommandEvent Comment CompositionEvent ConstantSourceNode \
    ContentVisibilityAutoStateChangeEvent ConvolverNode CookieChangeEvent CookieStore CookieStoreManager \
    Credential CredentialsContainer CustomElementRegistry CustomStateSet DOMImplementation DOMParser \
    DOMRectList DOMStringList DOMStringMap DOMTokenList DataTransfer DataTransferItem \
    DataTransferItemList DedicatedWorkerGlobalScope DelayNode DeviceMotionEvent DeviceOrientationEvent \
    DigitalCredential Document DocumentFragment DocumentTimeline DocumentType DragEvent \
    DynamicsCompressorNode Element ElementInternals EncodedAudioChunk EncodedVideoChunk Enumerator \
    EventCounts ExtendableCookieChangeEvent ExtendableEvent ExtendableMessageEvent External FetchEvent \
    FileList FileReaderSync FileSystem FileSystemDirectoryEntry FileSystemDirectoryHandle \
    FileSystemDirectoryReader FileSystemEntry FileSystemFileEntry FileSystemFileHandle FileSystemHandle \
    FileSystemSyncAccessHandle FileSystemWritableFileStream FocusEvent FontFace FontFaceSet \
    FontFaceSetLoadEvent FormDataEvent FragmentDirective GPUExternalTexture GainNode Gamepad \
    GamepadButton GamepadEvent GamepadHapticActuator Geolocation GeolocationCoordinates \
    GeolocationPosition GeolocationPositionError HTMLAllCollection HTMLAnchorElement HTMLAreaElement \
    HTMLAudioElement HTMLBRElement HTMLBaseElement HTMLBodyElement HTMLButtonElement HTMLCanvasElement \
    HTMLCollection HTMLDListElement HTMLDataElement HTMLDataListElement HTMLDetailsElement \
    HTMLDialogElement HTMLDirectoryElement HTMLDivElement HTMLDocument HTMLElement HTMLEmbedElement \
    HTMLFieldSetElement HTMLFontElement HTMLFormControlsCollection HTMLFormElement HTMLFrameElement \
    HTMLFrameSetElement HTMLHRElement HTMLHeadElement HTMLHeadingElement HTMLHtmlElement \
    HTMLIFrameElement HTMLImageElement HTMLInputElement HTMLLIElement HTMLLabelElement HTMLLegendElement \
    HTMLLinkElement HTMLMapElement HTMLMarqueeElement HTMLMediaElement HTMLMenuElement HTMLMetaElement \
    HTMLMeterElement HTMLModElement HTMLOListElement HTMLObjectElement HTMLOptGroupElement \
    HTMLOptionElement HTMLOptionsCollection HTMLOutputElement HTMLParagraphElement HTMLParamElement \
    HTMLPictureElement HTMLPreElement HTMLProgressElement HTMLQuoteElement HTMLScriptElement \
    HTMLSelectElement HTMLSlotElement HTMLSourceElement HTMLSpanElement HTMLStyleElement \
    HTMLTableCaptionElement HTMLTableCellElement HTMLTableColElement HTMLTableElement \
    HTMLTableRowElement HTMLTableSectionElement HTMLTemplateElement HTMLTextAreaElement HTMLTimeElement \
    HTMLTitleElement HTMLTrackElement HTMLUListElement HTMLUnknownElement HTMLVideoElement \
    HashChangeEvent Highlight HighlightRegistry History IDBCursor IDBCursorWithValue IDBDatabase \
    IDBFactory IDBIndex IDBKeyRange IDBObjectStore IDBOpenDBRequest IDBRequest IDBTransaction \
    IDBVersionChangeEvent IIRFilterNode IdleDeadline Image ImageCapture ImageDecoder ImageTrack \
    ImageTrackList InputDeviceInfo InputEvent IntersectionObserver IntersectionObserverEntry \
    KeyboardEvent KeyframeEffect LargestContentfulPaint MIDIAccess MIDIConnectionEvent MIDIInput \
    MIDIInputMap MIDIMessageEvent MIDIOutput MIDIOutputMap MIDIPort MathMLElement MediaCapabilities \
    MediaDeviceInfo MediaDevices MediaElementAudioSourceNode MediaEncryptedEvent MediaError \
    MediaKeyMessageEvent MediaKeySession MediaKeyStatusMap MediaKeySystemAccess MediaKeys MediaList \
    MediaMetadata MediaQueryList MediaQueryListEvent MediaRecorder MediaSession MediaSource \
    MediaSourceHandle MediaStream MediaStreamAudioDestinationNode MediaStreamAudioSourceNode \
    MediaStreamTrack MediaStreamTrackEvent MediaStreamTrackProcessor MimeType MimeTypeArray MouseEvent \
    MutationObserver MutationRecord NamedNodeMap NavigateEvent Navigation NavigationActivation \
    NavigationCurrentEntryChangeEvent NavigationDestination NavigationHistoryEntry \
    NavigationPrecommitController NavigationPreloadManager NavigationTransition NavigatorLogin Node \
    NodeFilter NodeIterator NodeList Notification NotificationEvent OfflineAudioCompletionEvent \
    OfflineAudioContext OffscreenCanvasRenderingContext2D Option OscillatorNode OverconstrainedError \
    PageRevealEvent PageSwapEvent PageTransitionEvent PannerNode Path2D PaymentAddress \
    PaymentMethodChangeEvent PaymentRequest PaymentRequestUpdateEvent PaymentResponse \
    PerformanceEventTiming PerformanceNavigation PerformanceNavigationTiming PerformancePaintTiming \
    PeriodicWave PermissionStatus Permissions PictureInPictureEvent PictureInPictureWindow Plugin \
    PluginArray PointerEvent PopStateEvent ProcessingInstruction PublicKeyCredential PushEvent \
    PushManager PushMessageData PushSubscription PushSubscriptionChangeEvent PushSubscriptionOptions \
    RTCCertificate RTCDTMFSender RTCDTMFToneChangeEvent RTCDataChannel RTCDataChannelEvent \
    RTCDtlsTransport RTCEncodedAudioFrame RTCEncodedVideoFrame RTCError RTCErrorEvent RTCIceCandidate \
    RTCIceTransport RTCPeerConnection RTCPeerConnectionIceErrorEvent RTCPeerConnectionIceEvent \
    RTCRtpReceiver RTCRtpScriptTransform RTCRtpScriptTransformer RTCRtpSender RTCRtpTransceiver \
    RTCSctpTransport RTCSessionDescription RTCStatsReport RTCTrackEvent RTCTransformEvent RadioNodeList \
    Range RemotePlayback Report ReportBody ReportingObserver ResizeObserver ResizeObserverEntry \
    ResizeObserverSize SVGAElement SVGAngle SVGAnimateElement SVGAnimateMotionElement \
    SVGAnimateTransformElement SVGAnimatedAngle SVGAnimatedBoolean SVGAnimatedEnumeration \
    SVGAnimatedInteger SVGAnimatedLength SVGAnimatedLengthList SVGAnimatedNumber SVGAnimatedNumberList \
    SVGAnimatedPreserveAspectRatio SVGAnimatedRect SVGAnimatedString SVGAnimatedTransformList \
    SVGAnimationElement SVGCircleElement SVGClipPathElement SVGComponentTransferFunctionElement \
    SVGDefsElement SVGDescElement SVGElement SVGEllipseElement SVGFEBlendElement SVGFEColorMatrixElement \
    SVGFEComponentTransferElement SVGFECompositeElement SVGFEConvolveMatrixElement \
    SVGFEDiffuseLightingElement SVGFEDisplacementMapElement SVGFEDistantLightElement \
    SVGFEDropShadowElement SVGFEFloodElement SVGFEFuncAElement SVGFEFuncBElement SVGFEFuncGElement \
    SVGFEFuncRElement SVGFEGaussianBlurElement SVGFEImageElement SVGFEMergeElement SVGFEMergeNodeElement \
    SVGFEMorphologyElement SVGFEOffsetElement SVGFEPointLightElement SVGFESpecularLightingElement \
    SVGFESpotLightElement SVGFETileElement SVGFETurbulenceElement SVGFilterElement \
    SVGForeignObjectElement SVGGElement SVGGeometryElement SVGGradientElement SVGGraphicsElement \
    SVGImageElement SVGLength SVGLengthList SVGLineElement SVGLinearGradientElement SVGMPathElement \
    SVGMarkerElement SVGMaskElement SVGMatrix SVGMetadataElement SVGNumber SVGNumberList SVGPathElement \
    SVGPatternElement SVGPoint SVGPointList SVGPolygonElement SVGPolylineElement SVGPreserveAspectRatio \
    SVGRadialGradientElement SVGRect SVGRectElement SVGSVGElement SVGScriptElement SVGSetElement \
    SVGStopElement SVGStringList SVGStyleElement SVGSwitchElement SVGSymbolElement SVGTSpanElement \
    SVGTextContentElement SVGTextElement SVGTextPathElement SVGTextPositioningElement SVGTitleElement \
    SVGTransform SVGTransformList SVGUnitTypes SVGUseElement SVGViewElement SafeArray Sanitizer \
    Scheduler Screen ScreenOrientation ScriptProcessorNode ScrollTimeline SecurityPolicyViolationEvent \
    Selection ServiceWorker ServiceWorkerContainer ServiceWorkerGlobalScope ServiceWorkerRegistration \
    ShadowRoot SharedWorker SharedWorkerGlobalScope SourceBuffer SourceBufferList \
    SpeechRecognitionAlternative SpeechRecognitionErrorEvent SpeechRecognitionEvent \
    SpeechRecognitionResult SpeechRecognitionResultList SpeechSynthesis SpeechSynthesisErrorEvent \
    SpeechSynthesisEvent SpeechSynthesisUtterance SpeechSynthesisVoice StaticRange StereoPannerNode \
    StorageEvent StorageManager StylePropertyMap StylePropertyMapReadOnly StyleSheet StyleSheetList \
    SubmitEvent TaskController TaskPriorityChangeEvent TaskSignal Text TextEvent TextMetrics TextTrack \
    TextTrackCue TextTrackCueList TextTrackList TimeRanges ToggleEvent Touch TouchEvent TouchList \
    TrackEvent TransitionEvent TreeWalker UIEvent UserActivation VBArray VTTCue VTTRegion ValidityState \
    VarDate VideoColorSpace VideoDecoder VideoEncoder VideoFrame VideoPlaybackQuality ViewTimeline \
    ViewTransition ViewTransitionTypeSet VisualViewport WGSLLanguageFeatures WSH WScript WakeLock \
    WakeLockSentinel WaveShaperNode WebGL2RenderingContext WebGLActiveInfo WebGLBuffer WebGLContextEvent \
    WebGLFramebuffer WebGLProgram WebGLQuery WebGLRenderbuffer WebGLRenderingContext WebGLSampler \
    WebGLShader WebGLShaderPrecisionFormat WebGLSync WebGLTexture WebGLTransformFeedback \
    WebGLUniformLocation WebGLVertexArrayObject WebKitCSSMatrix WebTransport \
    WebTransportBidirectionalStream WebTransportDatagramDuplexStream WebTransportError WheelEvent \
    WindowClient WorkerGlobalScope WorkerLocation WorkerNavigator Worklet XMLDocument XMLHttpRequest \
    XMLHttpRequestEventTarget XMLHttpRequestUpload XMLSerializer XPathEvaluator XPathExpression \
    XPathResult XSLTProcessor blur cancelAnimationFrame cancelIdleCallback captureEvents \
    clientInformation cookieStore crossOriginIsolated customElements devicePixelRatio event external \
    focus fonts frameElement frames getComputedStyle getSelection history importScripts indexedDB \
    innerHeight innerWidth isSecureContext length locationbar matchMedia menubar moveBy moveTo \
    navigation onabort onafterprint onanimationcancel onanimationend onanimationiteration \
    onanimationstart onauxclick onbeforeinput onbeforematch onbeforeprint onbeforetoggle onblur oncancel \
    oncanplay oncanplaythrough onchange onclick onclose oncommand oncontextlost oncontextmenu \
    oncontextrestored oncopy oncuechange oncut ondblclick ondevicemotion ondeviceorientation \
    ondeviceorientationabsolute ondrag ondragend ondragenter ondragleave ondragover ondragstart ondrop \
    ondurationchange onemptied onended onfocus onformdata ongamepadconnected ongamepaddisconnected \
    ongotpointercapture onhashchange oninput oninvalid onkeydown onkeypress onkeyup onlanguagechange \
    onloadeddata onloadedmetadata onloadstart onlostpointercapture onmessageerror onmousedown \
    onmouseenter onmouseleave onmousemove onmouseout onmouseover onmouseup onoffline ononline \
    onorientationchange onpagehide onpagereveal onpageshow onpageswap onpaste onpause onplay onplaying \
    onpointercancel onpointerdown onpointerenter onpointerleave onpointermove onpointerout onpointerover \
    onpointerrawupdate onpointerup onpopstate onprogress onratechange onrejectionhandled onreset \
    onresize onrtctransform onscroll onscrollend onsecuritypolicyviolation onseeked onseeking onselect \
    onselectionchange onselectstart onslotchange onstalled onstorage onsubmit onsuspend ontimeupdate \
    ontoggle ontouchcancel ontouchend ontouchmove ontouchstart ontransitioncancel ontransitionend \
    ontransitionrun ontransitionstart onvolumechange onwaiting onwebkitanimationend \
    onwebkitanimationiteration onwebkitanimationstart onwebkittransitionend onwheel open opener \
    orientation origin originAgentCluster outerHeight outerWidth pageXOffset pageYOffset parent \
    personalbar print releaseEvents requestAnimationFrame requestIdleCallback resizeBy resizeTo \
    scheduler screen screenLeft screenTop screenX screenY scroll scrollBy scrollTo scrollX scrollY \
    scrollbars speechSynthesis status statusbar stop toolbar top visualViewport webkitURL";

/// The bare identifier is JavaScript's own.
pub fn is_js_global(ident: &str) -> bool {
    JS_GLOBALS.binary_search(&ident).is_ok()
}

/// TypeScript's libraries declare the bare identifier already.
pub fn is_declared(ident: &str) -> bool {
    is_js_global(ident) || DOM_GLOBALS.split(' ').any(|name| name == ident)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_know_the_usual_names() {
        assert!(JS_GLOBALS.is_sorted());
        assert!(["fetch", "process", "console", "Deno", "Buffer", "require"].iter().all(|n| is_js_global(n)));
        assert!(["history", "status", "HTMLElement"].iter().all(|n| is_declared(n) && !is_js_global(n)));
        assert!(["time", "git", "memory", "demo", ""].iter().all(|n| !is_declared(n)));
    }
}
